# SPDX-License-Identifier: Apache-2.0
#
# The memory controller in a v1 tree beside an empty v2 one.

root=/sys/fs/cgroup
memory=$root/memory
group=$memory/group

umount $root
mount -t tmpfs tmpfs $root
mkdir $memory $root/unified
mount -t cgroup -o memory cgroup $memory
mount -t cgroup2 cgroup2 $root/unified

mkdir $group
echo 100M >$group/memory.limit_in_bytes

within $group cat /proc/self/cgroup | result self
result limit <$group/memory.limit_in_bytes
result root-limit <$memory/memory.limit_in_bytes
result stat <$group/memory.stat
