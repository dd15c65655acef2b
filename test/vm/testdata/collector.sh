# SPDX-License-Identifier: Apache-2.0
#
# Draft of the collector's story, told with testdata/server in its place: a
# limited process that serves, takes a batch, has its limit changed while it
# runs, and stops when told to.

url=http://127.0.0.1:4318/
root=/sys/fs/cgroup
pod=$root/pod
container=$pod/container

echo +memory >$root/cgroup.subtree_control
mkdir $pod
echo +memory >$pod/cgroup.subtree_control
mkdir $container
echo 512M >$pod/memory.max
echo 256M >$container/memory.max

within $container server 127.0.0.1:4318 &
server=$!

await 30 timeout 5 wget -q -O - $url | result limit-at-start

timeout 10 wget -q -O - --header 'Content-Type: application/json' \
	--post-file /batch.json $url | result reply

echo 320M >$container/memory.max
timeout 10 wget -q -O - $url | result limit-after-resize

result cgroup <"/proc/$server/cgroup"
result events <$container/memory.events

kill -TERM $server
code=0
wait $server || code=$?
result server-code $code
