// SPDX-License-Identifier: Apache-2.0

package pressure

// Disk is the free space of one file system. It is not safe for concurrent use.
type Disk struct {
	read            func() (free, total int64, err error)
	reserveFraction float64
	reserveSize     int64
	state           DiskState
}

// DiskState is what is known of a disk as of the last reading.
type DiskState struct {
	Free, Reserve int64 // bytes
	Low           bool
}

// NewDisk returns a disk that is low while less is free than its reserve, which is the smaller of a fraction of
// its size and a size in bytes. Nothing is read yet.
func NewDisk(read func() (free, total int64, err error), reserveFraction float64, reserveSize int64) *Disk {
	return &Disk{read: read, reserveFraction: reserveFraction, reserveSize: reserveSize}
}

// Check reads the disk and returns what is known of it, and whether it became low or stopped to be. A disk stops to
// be low once a quarter more than the reserve is free, so that one batch written or sent does not change it back. If
// the disk cannot be read, it stays as it was.
func (d *Disk) Check() (s DiskState, changed bool, err error) {
	free, total, err := d.read()
	if err != nil {
		return d.state, false, err
	}
	was := d.state.Low
	reserve := min(int64(d.reserveFraction*float64(total)), d.reserveSize)
	low := free < reserve || was && free < reserve+reserve/4
	d.state = DiskState{Free: free, Reserve: reserve, Low: low}
	return d.state, low != was, nil
}
