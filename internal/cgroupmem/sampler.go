// SPDX-License-Identifier: Apache-2.0

package cgroupmem

import (
	"errors"
	"path"
)

// Unknown stands for a figure that this machine does not offer, or that could not
// be read. It is below every threshold.
const Unknown = -1

// Sample is what the kernel said at one moment.
type Sample struct {
	// Unreclaimable is what the cgroup uses and the kernel cannot take back, in
	// bytes: anonymous and shared memory, what the kernel itself needs, and files
	// that have yet to be written. Close to the limit, a kill is near. The heap
	// that Go keeps free is part of it. Swap is not counted on.
	Unreclaimable int64
	// WorkingSet is what the cgroup uses less its inactive page cache, in bytes,
	// as Kubernetes reports it. It is no measure of danger: a page cache that was
	// read twice is part of it.
	WorkingSet int64
	// Pressure is the cgroup's. Version 1 does not offer it.
	Pressure Pressure
	// MachineTotal and MachineAvailable are MemTotal and MemAvailable in bytes;
	// either both are known or none, so that their difference always means something.
	MachineTotal, MachineAvailable int64
	// MachinePressure is that of all processes.
	MachinePressure Pressure
	// Failures tells what could not be read, at most one for each probe; all
	// figures of a probe that failed are Unknown. Nil in the good case. A file
	// that is not there is no failure.
	Failures []Failure
}

// Pressure is the share of the last ten seconds, in percent, in which some or all
// tasks stood still for want of memory (PSI; avg10 in the kernel's
// Documentation/accounting/psi.rst).
type Pressure struct {
	Some, Full float64
}

// Failure is a file that is there and could not be read or understood; the error
// names it.
type Failure struct {
	Probe Probe
	Err   error
}

// Probe names what a Sample is made of. The values are stable: they appear in
// metrics.
type Probe string

const (
	ProbeUsage           Probe = "memory_usage"     // Unreclaimable, WorkingSet
	ProbePressure        Probe = "memory_pressure"  // Pressure
	ProbeMachine         Probe = "machine_memory"   // MachineTotal, MachineAvailable
	ProbeMachinePressure Probe = "machine_pressure" // MachinePressure
)

// Sampler reads again and again how much is used of one Limit. It keeps its files
// open. It is not safe for concurrent use.
//
// A sample is a system call for each of five files, 10 to 25 µs in all (`make
// bench`), and does not allocate, except for failures and for files that are
// opened. What fails is tried again by the next sample. A file that is gone is
// opened anew at once, so that a cgroup that was removed and made again is found;
// one that is not there is looked for in every 64th sample.
type Sampler struct {
	r     *Reader
	limit Limit
	found bool // the cgroup was looked for

	parseStat                       func([]byte) (stat, error) // nil without a cgroup
	stat, current, kernel, pressure file                       // of the cgroup
	meminfo, machinePressure        file

	// Several times the length of any of the files: the kernel renders
	// memory.stat into a page, and /proc/meminfo has 50 to 60 lines.
	buf [32 << 10]byte
}

// Sampler returns a Sampler for usage in the cgroup whose limit governs, l.Dir.
// Where no cgroup's does, it is the process's own cgroup at the time of the first
// sample, if there is one. Another Dir, or a move of the process, wants another
// Sampler.
//
// It touches no file. Whatever is missing later is a matter of the samples. The
// caller must close it.
func (r *Reader) Sampler(l Limit) *Sampler {
	return &Sampler{
		r: r, limit: l,
		meminfo:         r.kept("/proc/meminfo"),
		machinePressure: r.kept("/proc/pressure/memory"),
	}
}

// Sample reads everything anew.
func (s *Sampler) Sample() Sample {
	sample := Sample{Unreclaimable: Unknown, WorkingSet: Unknown, Pressure: noPressure}
	note := func(p Probe, err error) {
		if err != nil {
			sample.Failures = append(sample.Failures, Failure{p, err})
		}
	}
	if err := s.find(); err != nil {
		note(ProbeUsage, err)
		note(ProbePressure, err)
	} else {
		sample.Unreclaimable, sample.WorkingSet, err = s.usage()
		note(ProbeUsage, err)
		sample.Pressure, err = read(&s.pressure, s.buf[:], parsePressure, noPressure)
		note(ProbePressure, err)
	}
	m, err := read(&s.meminfo, s.buf[:], parseMachine, noMachine)
	sample.MachineTotal, sample.MachineAvailable = m.total, m.available
	note(ProbeMachine, err)
	sample.MachinePressure, err = read(&s.machinePressure, s.buf[:], parsePressure, noPressure)
	note(ProbeMachinePressure, err)
	return sample
}

// Close closes the files. A later sample would open them again.
func (s *Sampler) Close() error {
	return errors.Join(s.stat.close(), s.current.close(), s.kernel.close(), s.pressure.close(),
		s.meminfo.close(), s.machinePressure.close())
}

// usageFiles are the files of a cgroup directory that state usage, beside
// memory.stat.
//
// Version 1 counts the kernel's own memory apart, and does not tell how much of
// it are caches that could be taken back: all of it counts. Its dirty pages do
// not, because there reclaim waits until they are written.
var usageFiles = map[Source]struct {
	parseStat                 func([]byte) (stat, error)
	current, kernel, pressure string
}{
	SourceCgroupV2: {parseStatV2, "memory.current", "", "memory.pressure"},
	SourceCgroupV1: {parseStatV1, "memory.usage_in_bytes", "memory.kmem.usage_in_bytes", ""},
}

// find decides once which cgroup is sampled. An error leaves that to the next
// sample.
func (s *Sampler) find() error {
	if s.found {
		return nil
	}
	source, dir := s.limit.Source, s.limit.Dir
	if dir == "" {
		own, dirs, err := s.r.ancestry()
		if err != nil {
			return err
		}
		if len(dirs) > 0 {
			source, dir = own, dirs[0]
		}
	}
	s.found = true
	if dir == "" {
		return nil
	}
	kept := func(name string) file {
		if name == "" {
			return file{}
		}
		return s.r.kept(path.Join(dir, name))
	}
	files := usageFiles[source]
	s.parseStat, s.stat = files.parseStat, kept("memory.stat")
	s.current, s.kernel, s.pressure = kept(files.current), kept(files.kernel), kept(files.pressure)
	return nil
}

// usage reads what the cgroup uses. Without memory.stat nothing is known of it;
// the root cgroup of version 2 has no memory.current and thus no working set; a
// kernel that does not account for its own memory counts as using none.
func (s *Sampler) usage() (unreclaimable, workingSet int64, err error) {
	st, err := read(&s.stat, s.buf[:], s.parseStat, noStat)
	if err != nil || st == noStat {
		return Unknown, Unknown, err
	}
	kernel, err := read(&s.kernel, s.buf[:], parseBytes, 0)
	if err != nil {
		return Unknown, Unknown, err
	}
	current, err := read(&s.current, s.buf[:], parseBytes, Unknown)
	if err != nil {
		return Unknown, Unknown, err
	}
	workingSet = Unknown
	if current != Unknown {
		workingSet = max(0, current-st.inactive) // the two are not of the same instant
	}
	return st.unreclaimable + kernel, workingSet, nil
}
