"""The conformance kit: does a runtime compute the max operators as the standards say?"""
