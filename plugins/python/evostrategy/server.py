"""The plugin's side of the contract (strategy.proto), with go-plugin's handshake."""

import base64
import concurrent.futures
import datetime
import os
import queue
import signal
import sys
import tempfile
import traceback
from itertools import islice

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
import grpc

from . import strategy_pb2 as pb
from .problem import Job, MalleableJob, NodeSet, Request, ResizeRequest, Strategy, Unfit

CORE_PROTOCOL = 1  # go-plugin's
PLAN_ONLY, WITH_RESIZE, WITH_SETS = 1, 2, 3  # versions of the contract
COOKIE, COOKIE_VALUE = "EVOSLURM_STRATEGY", "evoslurm.strategy"
SERVICE = "evoslurm.strategy.v1.Strategy"
TYPES = {bool: pb.TYPE_BOOL, int: pb.TYPE_INT, float: pb.TYPE_NUMBER, str: pb.TYPE_STRING}


def serve(strategy):
    """Makes this process a plugin that serves the strategy, until the sidecar ends it.

    What it prints goes to the sidecar's log (standard error); standard output
    belongs to the handshake.
    """
    if os.environ.get(COOKIE) != COOKIE_VALUE:
        sys.exit(f"{strategy.name} {strategy.version} is a strategy of Evoslurm: put it into the sidecar's folder of\n"
                 f"strategies, then: evosctl strategy reload; evosctl strategy use {strategy.name}\n\n{strategy.help}")
    versions = os.environ.get("PLUGIN_PROTOCOL_VERSIONS", str(PLAN_ONLY)).split(",")
    protocol = WITH_RESIZE if _resizes(strategy) and (str(WITH_RESIZE) in versions or not _plans(strategy)) else PLAN_ONLY
    if strategy.node_sets and str(WITH_SETS) in versions:
        protocol = WITH_SETS
    if str(protocol) not in versions:
        sys.exit(f"the sidecar speaks protocol versions {versions}, this strategy {protocol}")
    handshake = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # print() must not disturb the handshake

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=8),
                         options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
    desk = _Desk()
    server.add_generic_rpc_handlers((_handlers(strategy, desk), *_go_plugin_handlers(server, desk)))
    folder = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(prefix="strategy")
    path = os.path.join(folder, f"{os.getpid()}.sock")
    certificate = ""
    client = os.environ.get("PLUGIN_CLIENT_CERT", "").encode()
    if client:
        key, pem, der = _certificate()
        credentials = grpc.ssl_server_credentials([(key, pem)], root_certificates=client, require_client_auth=True)
        server.add_secure_port("unix:" + path, credentials)
        certificate = base64.b64encode(der).decode().rstrip("=")
    else:
        server.add_insecure_port("unix:" + path)
    server.start()
    if group := os.environ.get("PLUGIN_UNIX_SOCKET_GROUP"):
        os.chown(path, -1, int(group))
        os.chmod(path, 0o660)
    print(f"{CORE_PROTOCOL}|{protocol}|unix|{path}|grpc|{certificate}", file=handshake, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    desk.work()


def _plans(strategy):
    return type(strategy).plan is not Strategy.plan


def _resizes(strategy):
    return type(strategy).resize is not Strategy.resize


class Late(Exception):
    """There is no time left for this answer."""


class Unimplemented(Exception):
    """The strategy does not answer this call."""


class _Desk:
    """Works in the main thread, on one request at a time: strategies need not handle
    threads, and there the deadline can interrupt them, whatever they do."""

    def __init__(self):
        self._orders = queue.SimpleQueue()
        self._busy = False  # may be interrupted

    def do(self, work, request, values, wanted):
        """What work answers; wanted() tells whether somebody still waits for it."""
        done = concurrent.futures.Future()
        self._orders.put((work, request, values, wanted, done))
        return done.result()

    def close(self):
        self._orders.put(None)

    def work(self):
        """Serves until close() is called."""
        signal.signal(signal.SIGALRM, self._late)
        while order := self._orders.get():
            work, request, values, wanted, done = order
            try:
                if not wanted():
                    raise Late
                done.set_result(self._timed(work, request, values))
            except BaseException as e:
                done.set_exception(e)

    def _timed(self, work, request, values):
        try:
            self._busy = True
            if request.deadline > 0:
                signal.setitimer(signal.ITIMER_REAL, request.deadline)
            return work(request, values)
        finally:
            self._busy = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _late(self, *_):
        if self._busy:
            raise Late


def _certificate():
    """A key and a certificate for this one connection; the host learns it from the handshake."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.utcnow()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5)).not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=True, key_encipherment=False, content_commitment=False,
                                     data_encipherment=False, key_agreement=False, crl_sign=False, encipher_only=False, decipher_only=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        certificate.public_bytes(serialization.Encoding.PEM),
        certificate.public_bytes(serialization.Encoding.DER),
    )


def _handlers(strategy, desk):
    def answer(call, message, context):
        try:
            return call(message, context)
        except Late:
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the answer was not ready in time")
        except Unimplemented as e:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, str(e))
        except ValueError as e:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(e))
        except Exception:
            context.abort(grpc.StatusCode.INTERNAL, traceback.format_exc(limit=-5))

    def describe(message, context):
        values = _values(strategy, message.parameters)
        d = pb.DescribeResponse(name=strategy.name, version=strategy.version, help=strategy.help,
                                expand_limit=strategy.expand_limit(values), no_plan=not _plans(strategy), resizes=_resizes(strategy),
                                moldable=strategy.moldable, node_sets=strategy.node_sets)
        for p in strategy.parameters:
            d.parameters.append(pb.Parameter(name=p.name, type=TYPES[type(p.default)], default=_text(p.default), help=p.help,
                                             min=_text(p.min), max=_text(p.max), choices=p.choices))
        return d

    def plan(message, context):
        if not _plans(strategy):
            raise Unimplemented("it is a malleability policy and does not plan")
        request, pinned = _decode(message)
        values = _values(strategy, message.parameters)
        answers = desk.do(strategy.plan, request, values, context.is_active) if request.jobs else []
        if len(answers) != len(request.jobs):
            raise RuntimeError(f"plan() answered {len(answers)} jobs of {len(request.jobs)}")
        return _encode(request, pinned, answers)

    def resize(message, context):
        if not _resizes(strategy):
            raise Unimplemented("the strategy does not resize jobs")
        request = _decode_resize(message)
        count = len(request.jobs)
        sizes = desk.do(strategy.resize, request, _values(strategy, message.parameters), context.is_active)
        if len(sizes) != count:
            raise RuntimeError(f"resize() answered {len(sizes)} jobs of {count}")
        return pb.ResizeResponse(job_nodes=sizes)

    def resizes(message, context):
        return answer(resize, message, context)

    def describes(message, context):
        return answer(describe, message, context)

    def plans(messages, context):
        try:
            for message in messages:
                yield answer(plan, message, context)
        except grpc.RpcError:
            pass  # the sidecar has given up waiting

    def text(message):
        return message.SerializeToString()

    return grpc.method_handlers_generic_handler(SERVICE, {
        "Describe": grpc.unary_unary_rpc_method_handler(describes, pb.DescribeRequest.FromString, text),
        "Plan": grpc.stream_stream_rpc_method_handler(plans, pb.PlanRequest.FromString, text),
        "Resize": grpc.unary_unary_rpc_method_handler(resizes, pb.ResizeRequest.FromString, text),
    })


def _go_plugin_handlers(server, desk):
    """What go-plugin asks of every plugin: whether it is well, and to end."""
    def unary(answer):
        return grpc.unary_unary_rpc_method_handler(lambda message, context: answer(), None, None)

    def shutdown():
        server.stop(grace=0.1)
        desk.close()
        return b""

    return (
        grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": unary(lambda: b"\x08\x01")}),  # serving
        grpc.method_handlers_generic_handler("plugin.GRPCController", {"Shutdown": unary(shutdown)}),
    )


def _text(value):
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(strategy, given):
    values = {p.name: p.default for p in strategy.parameters}
    by_name = {p.name: p for p in strategy.parameters}
    for name, text in given.items():
        if name not in by_name:
            raise ValueError(f"strategy {strategy.name} has no parameter {name!r}")
        values[name] = by_name[name].parse(text)
    return values


def _decode(m):
    """The request, and for every row whether it is pinned."""
    request = Request(nodes=m.nodes, now=m.now, deadline=m.deadline_ms / 1000,
                      busy=list(zip(m.busy_start, m.busy_duration, m.busy_nodes)), jobs=[],
                      sets=[NodeSet(s.nodes, s.free, tuple(s.switches), s.weight, tuple(s.features), s.power, s.ready) for s in m.node_sets])
    pinned = list(m.job_pinned) or [False] * len(m.job_start)
    counts = list(m.job_alternatives) or [0] * len(m.job_start)
    prefers = list(m.job_prefers) or [0] * len(m.job_start)
    steps, other = zip(m.step_duration, m.step_nodes), zip(m.alternative_duration, m.alternative_nodes)
    lengths = iter(m.alternative_steps)
    for row, (start, limit, count) in enumerate(zip(m.job_start, m.job_expand_limit, m.job_steps)):
        own = tuple(islice(steps, count))
        alternatives = tuple(tuple(islice(other, length)) for length in islice(lengths, counts[row]))
        if pinned[row]:
            request.pinned.append((start, own))
        else:
            request.jobs.append(Job(start, own, limit, alternatives, prefers[row]))
    return request, pinned


def _decode_resize(m):
    jobs, first = [], 0
    points = list(zip(m.point_nodes, m.point_speedup))
    columns = zip(m.job_nodes, m.job_min, m.job_max, m.job_start, m.job_sizes, m.job_fixed, m.job_points)
    for nodes, least, most, start, sizes, fixed, count in columns:
        jobs.append(MalleableJob(nodes, least, most, start, sizes, fixed, tuple(points[first:first + count])))
        first += count
    return ResizeRequest(change=m.change, by=m.by, mandatory=m.mandatory, nodes=m.nodes, now=m.now, deadline=m.deadline_ms / 1000,
                         free=m.free, waiting=list(m.waiting_nodes), jobs=jobs)


def _encode(request, pinned, answers):
    m = pb.PlanResponse()
    starts, durations, choices = [], [], []
    running, planned = iter(request.pinned), iter(zip(request.jobs, answers))
    for row, is_pinned in enumerate(pinned):
        if is_pinned:
            start, steps = next(running)
            starts.append(start)
            durations.extend(d for d, _ in steps)
            choices.append(0)
            continue
        job, placed = next(planned)
        if isinstance(placed, Unfit):
            m.unfit.append(row)
            m.unfit_reason.append(placed.reason)
            starts.append(0)
            durations.extend([0] * len(job.steps))
            choices.append(0)
            continue
        starts.append(placed.start)
        durations.extend(placed.durations)
        choices.append(placed.choice)
    if any(choices):
        m.choice.extend(choices)
    m.start.extend(starts)
    m.step_duration.extend(durations)
    return m
