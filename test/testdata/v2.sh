# SPDX-License-Identifier: Apache-2.0
#
# The collector in a leaf with memory.high, below a parent with memory.max: the leaf governs, then a limit of
# the leaf that is lower still, then, once the leaf has none, the parent. At last what the kernel says of the
# parent's stalls, which version 1 does not offer, becomes unreadable.

root=/sys/fs/cgroup
pod=$root/pod
container=$pod/container
log=/tmp/log
metrics=http://127.0.0.1:8888/metrics

echo +memory >$root/cgroup.subtree_control
mkdir $pod
echo +memory >$pod/cgroup.subtree_control
mkdir $container
echo 512M >$pod/memory.max
echo 384M >$container/memory.high

cat $pod/memory.pressure >/tmp/pressure # which can be spoiled
mount -o bind /tmp/pressure $pod/memory.pressure

within $container collector --config /gateway.yaml --config /machine.yaml 2>$log &
collector=$!

await 90 grep 'Everything is ready' $log >/dev/null
grep 'Memory pool sized' $log | result sized

wget -q -O - --header 'Content-Type: application/json' \
	--post-file /batch.json http://127.0.0.1:4318/v1/logs | result reply
await 30 sh -c "wget -q -O - $metrics | grep -xF 'otelcol_governor_memory_usage 0'" >/dev/null
wget -q -O - $metrics | grep '^otelcol_limiter_items' | result items

echo 320M >$container/memory.max
await 30 grep 'Memory pool resized' $log | result lowered

echo max >$container/memory.high
echo max >$container/memory.max
await 30 sh -c "wget -q -O - $metrics | grep -xF 'otelcol_governor_memory_desired_limit 4.02653184e+08'" >/dev/null
await 30 sh -c "grep 'Memory pool resized' $log | grep '\"limit\":536870912'" | result raised

echo 'some avg10=?' >/tmp/pressure
await 30 sh -c "wget -q -O - $metrics | grep '^otelcol_governor_probe_errors.*memory_pressure'" >/dev/null
await 30 grep 'What the kernel says cannot be read' $log | result unreadable
wget -q -O - $metrics | grep '^otelcol_governor_pressure_level' | result level

result cgroup <"/proc/$collector/cgroup"
result events <$container/memory.events

kill -TERM $collector
code=0
wait $collector || code=$?
result code $code
