"""The reader fitted: the upper half of all-MiniLM-L6-v2 and six answers above it, by jax and optax.

The lower layers and the words stay as they were: their outputs are computed once, and half of the time is saved. Both
libraries, onnx and the network's published weights are needed here alone: `uv pip install --group fit`.
"""

from __future__ import annotations

import importlib
import json
import struct
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrubjay_bench.reader_examples import Example
from scrubjay_shared.errors import UnavailableError

Floats = NDArray[np.float32]
Params = dict[str, Any]

WIDTH, HEADS, LAYERS, FROZEN = 384, 12, 6, 3
POSITIONS = 128
CODES, TYPES, SCOPES = "KOQRACPN", "dpfigh", "ups"
ANSWERS = {"kept": 1, "much": 1, "code": len(CODES), "type": len(TYPES), "scope": len(SCOPES), "needs": 1}
WEIGHTS = {"kept": 1.0, "much": 0.3, "code": 0.5, "type": 0.5, "scope": 0.3, "needs": 0.3}
EPOCHS, RATE, BATCH, DROPPED, SMOOTHED = 3, 1e-4, 32, 0.1, 0.02
HEAD_RATE = 5.0
"""Times `RATE`: the answers begin from nothing."""
STEP = 16
"""Lengths are rounded up to it: each is compiled once."""


def load(name: str) -> Any:
    """Return a library that only fitting needs. Raises UnavailableError when it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as e:
        raise UnavailableError(f"{name} is not installed", hint="uv pip install --group fit") from e


def published(seed: int) -> Params:
    """Return the published weights, matrices as (inputs, outputs), with answers above them that say nothing yet."""
    folder = resources.files(load("all_minilm_l6_v2").__name__)
    with zipfile.ZipFile(str(folder.joinpath("model.zip"))) as packed:
        held = _tensors(packed.read("model.safetensors"))

    def layer(n: int) -> Params:
        def of(part: str) -> tuple[Floats, Floats]:
            return held[f"encoder.layer.{n}.{part}.weight"], held[f"encoder.layer.{n}.{part}.bias"]

        def turned(part: str) -> tuple[Floats, Floats]:
            weight, bias = of(part)
            return weight.T.copy(), bias

        three = [turned(f"attention.self.{part}") for part in ("query", "key", "value")]
        return {
            "qkv": (np.concatenate([one[0] for one in three], 1), np.concatenate([one[1] for one in three])),
            "out": turned("attention.output.dense"),
            "norm": of("attention.output.LayerNorm"),
            "up": turned("intermediate.dense"),
            "down": turned("output.dense"),
            "last": of("output.LayerNorm"),
        }

    draw = np.random.default_rng(seed)

    def fresh(inputs: int, outputs: int) -> tuple[Floats, Floats]:
        return draw.normal(0, 0.02, (inputs, outputs)).astype(np.float32), np.zeros(outputs, np.float32)

    return {
        "words": held["embeddings.word_embeddings.weight"],
        "places": held["embeddings.position_embeddings.weight"][:POSITIONS]
        + held["embeddings.token_type_embeddings.weight"][0],
        "first": (held["embeddings.LayerNorm.weight"], held["embeddings.LayerNorm.bias"]),
        "layers": [layer(n) for n in range(LAYERS)],
        "pool": fresh(2 * WIDTH, WIDTH),
        **{name: fresh(WIDTH, outputs) for name, outputs in ANSWERS.items()},
    }


def fitted(examples: Sequence[Example], seed: int = 0, say: Callable[[str], None] = print) -> Params:
    """Return weights fitted to the examples: the same for the same seed and machine, but for what threads round."""
    jax, optax = load("jax"), load("optax")
    jnp = jax.numpy
    whole = published(seed)
    cached = _lower_outputs(jax, whole, examples)
    upper = {name: whole[name] for name in ("pool", *ANSWERS)} | {"layers": whole["layers"][FROZEN:]}
    steps = EPOCHS * (len(examples) // BATCH + POSITIONS // STEP)
    rate = optax.warmup_cosine_decay_schedule(0, RATE, steps // 10, steps, RATE / 50)
    labels = {
        name: jax.tree.map(lambda _, name=name: "layers" if name == "layers" else "head", of)
        for name, of in upper.items()
    }
    update = optax.multi_transform(
        {
            "head": optax.adamw(lambda step: rate(step) * HEAD_RATE, weight_decay=0.01),
            "layers": optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=0.01)),
        },
        labels,
    )

    def loss(params: Params, shown: tuple[Any, Any, Any], right: Any, key: Any) -> Any:
        found = _upper(jax, params, shown, key)
        total = 0.0
        for name, weight in WEIGHTS.items():
            wanted, said = right[name], found[name]
            known = wanted >= 0
            if ANSWERS[name] == 1:
                smooth = SMOOTHED if name == "kept" else 0.0
                aim = jnp.maximum(wanted, 0) * (1 - 2 * smooth) + smooth
                each = optax.sigmoid_binary_cross_entropy(said[:, 0], aim)
            else:
                each = optax.softmax_cross_entropy_with_integer_labels(said, jnp.maximum(wanted, 0).astype(int))
            total += weight * (known * each).sum() / len(shown[1])
        return total

    @jax.jit  # type: ignore[untyped-decorator, unused-ignore]
    def step(params: Params, state: Any, *batch: Any) -> tuple[Params, Any, Any]:
        value, slope = jax.value_and_grad(loss)(params, *batch)
        change, state = update.update(slope, state, params)
        return optax.apply_updates(params, change), state, value

    params = jax.tree.map(jnp.asarray, upper)
    state, draw, key = update.init(params), np.random.default_rng(seed), jax.random.key(seed, impl="unsafe_rbg")
    began = time.perf_counter()
    for epoch in range(EPOCHS):
        losses = []
        for rows, ids, own in _batches(examples, draw):
            key, now = jax.random.split(key)
            states = np.zeros((*ids.shape, WIDTH), np.float32)
            for n, row in enumerate(rows):
                states[n, : len(cached[row])] = cached[row]
            right = _right([examples[row] for row in rows], len(ids))
            params, state, value = step(params, state, (states, ids, own), right, now)
            losses.append(float(value))
        say(f"epoch {epoch + 1} of {EPOCHS}: loss {np.mean(losses):.3f}, {time.perf_counter() - began:.0f} s")
    made = jax.tree.map(np.asarray, params)
    weights: Params = whole | made | {"layers": [*whole["layers"][:FROZEN], *made["layers"]]}
    return weights


def _tensors(data: bytes) -> dict[str, Floats]:
    """Return the tensors of a file in the safetensors format: a length, a table in JSON, and their bytes."""
    (size,) = struct.unpack("<Q", data[:8])
    table: dict[str, Any] = json.loads(data[8 : 8 + size])
    made = {}
    for name, about in table.items():
        if name != "__metadata__" and about["dtype"] == "F32":
            begin, end = about["data_offsets"]
            flat = np.frombuffer(data[8 + size + begin : 8 + size + end], np.float32)
            made[name.removeprefix("bert.")] = flat.reshape(about["shape"]).copy()
    return made


def _batches(examples: Sequence[Example], draw: np.random.Generator | None) -> Iterator[tuple[list[int], Any, Any]]:
    """Yield rows of like length with their tokens and the places of their own; the last of a length is filled up."""
    order = range(len(examples)) if draw is None else draw.permutation(len(examples))
    waiting: dict[int, list[int]] = {}
    full = []
    for row in order:
        length = -(-len(examples[row].tokens) // STEP) * STEP
        rows = waiting.setdefault(length, [])
        rows.append(int(row))
        if len(rows) == BATCH:
            full.append((length, waiting.pop(length)))
    full += list(waiting.items())
    for n in range(len(full)) if draw is None else draw.permutation(len(full)):
        length, rows = full[n]
        ids, own = np.zeros((BATCH, length), np.int32), np.zeros((BATCH, length), np.float32)
        ids[len(rows) :, 0] = own[len(rows) :, 0] = 1
        for k, row in enumerate(rows):
            ids[k, : len(examples[row].tokens)] = examples[row].tokens
            own[k, examples[row].own] = 1
        yield rows, ids, own


def _right(examples: Sequence[Example], size: int) -> dict[str, Floats]:
    """Return what each answer should be, -1 where nothing is known of it."""
    right = {name: np.full(size, -1, np.float32) for name in ANSWERS}
    for n, one in enumerate(examples):
        right["kept"][n] = one.is_kept
        right["code"][n] = CODES.find(one.code[0])
        if one.is_kept:
            right["much"][n], right["needs"][n] = one.code[1] == "3", one.code.endswith("+")
            right["type"][n], right["scope"][n] = TYPES.index(one.code[2]), SCOPES.index(one.code[3])
    return right


def _lower_outputs(jax: Any, whole: Params, examples: Sequence[Example]) -> dict[int, NDArray[np.float16]]:
    @jax.jit  # type: ignore[untyped-decorator, unused-ignore]
    def lower(params: Params, ids: Any) -> Any:
        states = _norm(jax, params["words"][ids] + params["places"][: ids.shape[1]], params["first"])
        for one in params["layers"]:
            states = _layer(jax, one, states, ids, (None, None))
        return states

    params = {name: whole[name] for name in ("words", "places", "first")} | {"layers": whole["layers"][:FROZEN]}
    params = jax.tree.map(jax.numpy.asarray, params)
    made = {}
    for rows, ids, _ in _batches(examples, None):
        found = np.asarray(lower(params, ids)).astype(np.float16)
        made.update({row: found[n, : len(examples[row].tokens)] for n, row in enumerate(rows)})
    return made


def _upper(jax: Any, params: Params, shown: tuple[Any, Any, Any], key: Any) -> dict[str, Any]:
    states, ids, own = shown
    keys = jax.random.split(key, 2 * len(params["layers"]) + 1)
    for n, one in enumerate(params["layers"]):
        states = _layer(jax, one, states, ids, (keys[2 * n], keys[2 * n + 1]))
    mean = (states * own[..., None]).sum(1) / own.sum(1, keepdims=True)
    both = _dropped(jax, jax.numpy.concatenate([states[:, 0], mean], -1), keys[-1])
    pooled = jax.numpy.tanh(both @ params["pool"][0] + params["pool"][1])
    return {name: pooled @ params[name][0] + params[name][1] for name in ANSWERS}


def _layer(jax: Any, one: Params, states: Any, ids: Any, keys: tuple[Any, Any]) -> Any:
    rows, length, _ = states.shape
    three = (states @ one["qkv"][0] + one["qkv"][1]).reshape(rows, length, 3, HEADS, WIDTH // HEADS)
    query, key, value = three.transpose(2, 0, 3, 1, 4)
    hidden = jax.numpy.where(ids > 0, 0.0, -1e9)[:, None, None, :]
    seen = jax.nn.softmax(query @ key.transpose(0, 1, 3, 2) / np.sqrt(WIDTH // HEADS) + hidden, -1) @ value
    seen = seen.transpose(0, 2, 1, 3).reshape(rows, length, WIDTH)
    states = _norm(jax, states + _dropped(jax, seen @ one["out"][0] + one["out"][1], keys[0]), one["norm"])
    wide = jax.nn.gelu(states @ one["up"][0] + one["up"][1], approximate=True)
    return _norm(jax, states + _dropped(jax, wide @ one["down"][0] + one["down"][1], keys[1]), one["last"])


def _norm(jax: Any, states: Any, by: tuple[Any, Any]) -> Any:
    mean = states.mean(-1, keepdims=True)
    spread = ((states - mean) ** 2).mean(-1, keepdims=True)
    return (states - mean) * jax.lax.rsqrt(spread + 1e-12) * by[0] + by[1]


def _dropped(jax: Any, states: Any, key: Any) -> Any:
    if key is None:
        return states
    return jax.numpy.where(jax.random.bernoulli(key, 1 - DROPPED, states.shape), states / (1 - DROPPED), 0)


def network(params: Params) -> Any:
    """Return the weights as a network in the ONNX format, for one sentence at a time, in 32 bits."""
    onnx = load("onnx")
    make, of_array, kinds = onnx.helper, onnx.numpy_helper.from_array, onnx.TensorProto
    held: list[Any] = []
    nodes: list[Any] = []

    def const(name: str, value: Any, kind: Any = np.float32) -> str:
        held.append(of_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def op(kind: str, *inputs: str, **how: Any) -> str:
        nodes.append(make.make_node(kind, list(inputs), [f"n{len(nodes)}"], **how))
        return f"n{len(nodes) - 1}"

    def linear(states: str, by: tuple[Floats, Floats], name: str) -> str:
        return op("Add", op("MatMul", states, const(f"{name}.w", by[0])), const(f"{name}.b", by[1]))

    def norm(states: str, by: tuple[Floats, Floats], name: str) -> str:
        return op("LayerNormalization", states, const(f"{name}.g", by[0]), const(f"{name}.s", by[1]), epsilon=1e-12)

    zero, one, two = (const(name, [n], np.int64) for n, name in enumerate(("zero", "one", "two")))
    split = const("split", [1, -1, HEADS, WIDTH // HEADS], np.int64)
    flat = const("flat", [1, -1, WIDTH], np.int64)
    half, root, whole = const("half", 0.5), const("root", 0.5**0.5), const("whole", 1.0)
    scale = const("scale", (WIDTH // HEADS) ** -0.5)
    length = op("Slice", op("Shape", "input_ids"), one, two)
    words = op("Gather", const("words", params["words"]), "input_ids")
    places = op("Unsqueeze", op("Slice", const("places", params["places"]), zero, length, zero), zero)
    states = norm(op("Add", words, places), params["first"], "first")
    for n, layer in enumerate(params["layers"]):
        weights, biases = np.split(layer["qkv"][0], 3, 1), np.split(layer["qkv"][1], 3)
        query, key, value = (
            op("Transpose", op("Reshape", linear(states, by, f"{n}.{name}"), split), perm=order)
            for by, name, order in zip(
                zip(weights, biases, strict=True), "qkv", ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True
            )
        )
        seen = op("MatMul", op("Softmax", op("Mul", op("MatMul", query, key), scale), axis=-1), value)
        seen = op("Reshape", op("Transpose", seen, perm=[0, 2, 1, 3]), flat)
        states = norm(op("Add", states, linear(seen, layer["out"], f"{n}.out")), layer["norm"], f"{n}.norm")
        wide = linear(states, layer["up"], f"{n}.up")
        wide = op("Mul", op("Mul", wide, half), op("Add", op("Erf", op("Mul", wide, root)), whole))
        states = norm(op("Add", states, linear(wide, layer["down"], f"{n}.down")), layer["last"], f"{n}.last")
    own = op("Unsqueeze", op("Cast", "token_type_ids", to=kinds.FLOAT), two)
    mean = op("Div", op("ReduceSum", op("Mul", states, own), one), op("ReduceSum", own, one))
    pooled = op(
        "Tanh", linear(op("Concat", op("Slice", states, zero, one, one), mean, axis=-1), params["pool"], "pool")
    )
    answers = (
        np.concatenate([params[name][0] for name in ANSWERS], 1),
        np.concatenate([params[name][1] for name in ANSWERS]),
    )
    nodes.append(make.make_node("Identity", [linear(pooled, answers, "answers")], ["answers"]))
    graph = make.make_graph(
        nodes,
        "reader",
        [make.make_tensor_value_info(name, kinds.INT64, [1, "tokens"]) for name in ("input_ids", "token_type_ids")],
        [make.make_tensor_value_info("answers", kinds.FLOAT, [1, 1, sum(ANSWERS.values())])],
        held,
    )
    made = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def write(params: Params, path: Path) -> None:
    """Write the weights as a network in eight bits, the scale of each column its own."""
    onnx, quantise = load("onnx"), load("onnxruntime.quantization")
    wide = path.with_suffix(".wide")
    onnx.save(network(params), str(wide))
    quantise.quantize_dynamic(
        str(wide),
        str(path),
        weight_type=quantise.QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        op_types_to_quantize=["MatMul", "Gather"],
        extra_options={"MatMulConstBOnly": True},
    )
    wide.unlink()
