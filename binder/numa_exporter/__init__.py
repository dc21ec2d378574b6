"""The program on each node with several NUMA zones: tell the cluster in which zones the kubelet placed each pod."""
