"""Random sequences of pods, faults and interruptions on a cluster with every kind of device.

The real scheduler and two real binders work on a fake API server; a simulated kubelet starts pods. After every
step no device may be given twice; at the end nothing may be left over, and every pod runs or says why not.
"""
