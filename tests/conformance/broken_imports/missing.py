import a_package_that_is_not_there  # type: ignore[import-not-found]  # noqa: F401
