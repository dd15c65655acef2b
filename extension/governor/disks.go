// SPDX-License-Identifier: Apache-2.0

package governor

import (
	"context"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"go.uber.org/zap"

	"github.com/otel-governor/otel-governor/internal/pressure"
)

// disksInterval is how often the free space of disks is read. It changes more slowly than memory.
const disksInterval = time.Second

// disks are those that queues are written to.
type disks struct {
	checking sync.Mutex // one at a time
	mu       sync.Mutex
	all      []watched
}

// watched is the disk that holds a path.
type watched struct {
	path   string
	disk   *pressure.Disk
	state  pressure.DiskState
	read   bool // at least once
	failed bool // the last time
}

// watch makes the disks those of the configuration and of directories that are written to. What is known of those
// that it had stays known.
func (d *disks) watch(configured []DiskConfig, directories []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := map[string]watched{}
	for _, w := range d.all {
		was[w.path] = w
	}
	d.all = nil
	known := map[string]bool{}
	for _, path := range directories {
		configured = append(configured, DiskConfig{Path: path})
	}
	for _, c := range configured {
		if known[c.Path] {
			continue
		}
		known[c.Path] = true
		if w, had := was[c.Path]; had {
			d.all = append(d.all, w)
			continue
		}
		fraction, size := c.reserve()
		d.all = append(d.all, watched{path: c.Path, disk: pressure.NewDisk(func() (free, total int64, err error) {
			return freeSpace(c.Path)
		}, fraction, size)})
	}
}

// freeSpace returns the bytes that are free to us on the disk that holds path, and its size.
func freeSpace(path string) (free, total int64, err error) {
	u, err := disk.Usage(path)
	if err != nil {
		return 0, 0, err
	}
	return int64(u.Free), int64(u.Total), nil
}

// watchDisks reads the disks again and again, apart from all else: a file system in a network may not answer.
func (g *governor) watchDisks(ctx context.Context) {
	tick := time.NewTicker(disksInterval)
	defer tick.Stop()
	for {
		g.disks.check(ctx, g)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// check reads the disks.
func (d *disks) check(ctx context.Context, g *governor) {
	d.checking.Lock()
	defer d.checking.Unlock()
	for i := range d.states() {
		d.mu.Lock()
		w := d.all[i]
		d.mu.Unlock()
		state, changed, err := w.disk.Check()
		if err != nil {
			g.telemetry.unreadable(ctx, "disk")
			if !w.failed {
				g.logger.Warn("The free space of a disk cannot be read; it counts as it was",
					zap.String("path", w.path), zap.Error(err))
			}
		}
		w.state, w.failed, w.read = state, err != nil, w.read || err == nil
		d.mu.Lock()
		if i < len(d.all) && d.all[i].disk == w.disk {
			d.all[i] = w
		}
		d.mu.Unlock()
		figures := []zap.Field{zap.String("path", w.path), zap.Int64("free", state.Free), zap.Int64("reserve", state.Reserve)}
		switch {
		case changed && state.Low:
			g.logger.Warn("A disk is low; new work is refused until it has more space", figures...)
		case changed:
			g.logger.Info("A disk has space again", figures...)
		}
	}
}

// states returns what is known of the disks.
func (d *disks) states() []watched {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]watched(nil), d.all...)
}

// lowest returns the disk that is furthest below its reserve, if any is low.
func (d *disks) lowest() (low pressure.DiskState) {
	for _, w := range d.states() {
		if s := w.state; s.Low && (!low.Low || s.Reserve-s.Free > low.Reserve-low.Free) {
			low = s
		}
	}
	return low
}
