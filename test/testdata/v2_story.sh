# SPDX-License-Identifier: Apache-2.0
#
# Tells the story that /story-name names, by the program that has the stories, below cgroup v2. Its verdicts are
# reported apart from what else is said.

mkdir -p /dev/shm
mount -t tmpfs tmpfs /dev/shm
echo +memory >/sys/fs/cgroup/cgroup.subtree_control

cd /module/test
./stories -test.v -test.parallel 1 -test.timeout 4m -test.run "$(cat /story-name)" 2>&1 | tee /tmp/said
grep -- '--- ' /tmp/said | result verdicts
