"""PreemptionToleration of scheduler-plugins: pods tolerate preemption for a while, as their PriorityClass says."""

from mooring.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs


class PreemptionTolerationArgs(DefaultPreemptionArgs, forbid_unknown_fields=True):
    """PreemptionTolerationArgs: those of DefaultPreemption."""


class PreemptionToleration(DefaultPreemption):
    """The switch, in place of DefaultPreemption: victims are chosen by the same action, which then heeds tolerations
    (`mooring.actions.preempt.tolerations`)."""

    args_type = PreemptionTolerationArgs
