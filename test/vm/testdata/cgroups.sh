# SPDX-License-Identifier: Apache-2.0
#
# Limits of a parent and its leaf, seen from inside the leaf, and one
# out-of-memory kill in a small group beside them.

root=/sys/fs/cgroup
parent=$root/parent
leaf=$parent/leaf
small=$root/small

result filesystem-magic "$(stat -f -c %t $root)"
result controllers <$root/cgroup.controllers

echo +memory >$root/cgroup.subtree_control
mkdir $parent
echo +memory >$parent/cgroup.subtree_control
mkdir $leaf $small
echo 512M >$parent/memory.max
echo 256M >$leaf/memory.high

within $leaf cat /proc/self/cgroup | result leaf-cgroup
within $leaf grep ' - cgroup2 ' /proc/self/mountinfo | result leaf-mountinfo
result parent-max <$parent/memory.max
result leaf-max <$leaf/memory.max
result leaf-high <$leaf/memory.high
result leaf-pressure <$leaf/memory.pressure

# dd fills a buffer of one block: 64 MiB where 16 are allowed.
echo 16M >$small/memory.max
code=0
within $small dd if=/dev/zero of=/dev/null bs=64M count=1 || code=$?
result killed-code $code
result small-events <$small/memory.events
