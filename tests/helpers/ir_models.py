"""Small IRs for tests: layers, ports and edges as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def ports(side: str, *shapes: tuple[int, tuple[object, ...]]) -> str:
    inner = "".join(
        f'<port id="{number}">{"".join(f"<dim>{size}</dim>" for size in shape)}</port>' for number, shape in shapes
    )
    return f"<{side}>{inner}</{side}>" if shapes else ""


def layer(number: int, name: str, kind: str, data: str = "", inputs: Any = (), outputs: Any = ()) -> str:
    message = f"<data {data}/>" if data else ""
    body = message + ports("input", *inputs) + ports("output", *outputs)
    return f'<layer id="{number}" name="{name}" type="{kind}">{body}</layer>'


def net(layers: list[str], edges: list[tuple[int, int, int, int]], version: object = 11) -> str:
    lines = "".join(f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges)
    return (
        f'<?xml version="1.0"?><net version="{version}"><layers>{"".join(layers)}</layers><edges>{lines}</edges></net>'
    )


def segment_net(data: str, rows: tuple[int, ...], count: bool, out: tuple[int, ...], kind: str = "f32") -> str:
    """Return an IR with one SegmentMax layer, as in the examples of the specification."""
    sizes = ",".join(map(str, rows))
    layers = [
        layer(0, "data", "Parameter", f'shape="{sizes}" element_type="{kind}"', outputs=[(0, rows)]),
        layer(1, "ids", "Parameter", f'shape="{rows[0]}" element_type="i64"', outputs=[(0, rows[:1])]),
        layer(2, "count", "Parameter", 'shape="" element_type="i64"', outputs=[(0, ())]) if count else "",
        layer(
            3,
            "top",
            "SegmentMax",
            data,
            [(0, rows), (1, rows[:1]), *([(2, (0,))] if count else [])],
            [(3, out)],
        ),
        layer(4, "y", "Result", inputs=[(0, out)]),
    ]
    return net(layers, [(0, 0, 3, 0), (1, 0, 3, 1), *([(2, 0, 3, 2)] if count else []), (3, 3, 4, 0)])


def saved(folder: Path, text: str | bytes, weights: bytes | None = None) -> Path:
    path = folder / "model.xml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    if weights is not None:
        path.with_suffix(".bin").write_bytes(weights)
    return path


def reduce_net(size: int, offset: int = 0, shape: str = "1", more: str = 'keep_dims="true"') -> str:
    const = f'element_type="i64" offset="{offset}" size="{size}" shape="{shape}"'
    layers = [
        layer(0, "x", "Parameter", 'shape="?,3" element_type="f32"', outputs=[(0, (-1, 3))]),
        layer(1, "b", "Parameter", 'shape="3" element_type="f32"', outputs=[(0, (3,))]),
        layer(2, "axes", "Const", const, outputs=[(0, (1,))]),
        layer(3, "m", "Maximum", 'auto_broadcast="numpy"', [(0, (-1, 3)), (1, (3,))], [(2, (-1, 3))]),
        layer(4, "r", "ReduceMax", more, [(0, (-1, 3)), (1, (1,))], [(2, (-1, 1))]),
        layer(5, "y", "Result", inputs=[(0, (-1, 1))]),
    ]
    return net(layers, [(0, 0, 3, 0), (1, 0, 3, 1), (3, 2, 4, 0), (2, 0, 4, 1), (4, 2, 5, 0)])


# Files that are not an IR, with their error.
NOT_AN_IR = [
    ("", "not well-formed XML"),
    (reduce_net(8)[:200], "not well-formed XML"),
    ("<html/>", "root element is not <net>"),
    (
        '<!DOCTYPE net [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><net version="11"><layers>&b;</layers></net>',
        "document type or entities",
    ),
    ('<!DOCTYPE net SYSTEM "file:///etc/passwd"><net version="11"><layers/></net>', "document type or entities"),
    ('<?xml version="1.0" encoding="klingon"?><net/>', "model.xml"),
    (reduce_net(8).replace('<net version="11"', '<net version="7"'), "version must be 10 or 11, got 7"),
    (reduce_net(8).replace('<net version="11"', "<net"), "got none"),
]
