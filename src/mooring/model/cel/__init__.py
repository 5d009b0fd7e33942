"""The Common Expression Language as Kubernetes uses it: selectors of devices, rules of custom resources.

`compile_expression(text, variables)` gives a `Program`, or raises CelCompileError; `Program.evaluate` gives a value,
or raises CelEvaluationError. The language is cel-spec's with Kubernetes' libraries (quantities, semantic versions,
strings, lists, regular expressions, sets, optional values). Why it is written here: docs/decisions/0020.
"""

from mooring.model.cel.program import Program as Program
from mooring.model.cel.program import compile_expression as compile_expression
from mooring.model.cel.values import CelCompileError as CelCompileError
from mooring.model.cel.values import CelEvaluationError as CelEvaluationError
