// SPDX-License-Identifier: Apache-2.0

package footprint

// classes are the sizes of the slots that Go's allocator hands out
// (runtime: sizeclasses.go). Larger objects take whole pages.
var classes = [...]uint16{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256,
	288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280,
	1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5376, 6144, 6528,
	6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432,
	19072, 20480, 21760, 24576, 27264, 28672, 32768,
}

const (
	maxClass = 32768
	page     = 8192
	// An object with pointers of more than maxBare bytes is preceded by a header
	// of that many bytes in the same slot.
	maxBare = 512
	header  = 8
)

// slots[(n+7)/8] is the slot of an object of n bytes.
var slots = func() (s [maxClass/8 + 1]uint16) {
	c := 0
	for i := range s {
		if i*8 > int(classes[c]) {
			c++
		}
		s[i] = classes[c]
	}
	s[0] = 0
	return s
}()

// tiny[n] is the share that an object of n bytes without pointers has in the
// 16-byte blocks that the allocator packs such objects into: the block over the
// number of such objects that fit in one, rounded up. What really shares a block
// depends on the order of allocation; this does not, so that the order of fields
// on the wire cannot change the sum.
var tiny = [16]uint8{0, 1, 2, 4, 4, 6, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16}

// short[n] is the heap of a string of n bytes. Those of one byte are the runtime's own.
var short = shortStrings()

func shortStrings() (s [257]uint16) {
	for n := 2; n < len(s); n++ {
		s[n] = uint16(flat(n))
	}
	return s
}

// stringValue is the heap of a value that is a string, beside the string.
var stringValue = object(sizeStringValue)

// object is the heap of one struct, or of an array of pointers up to maxBare.
func object(n int) int64 {
	if n <= maxClass {
		return int64(slots[(n+7)/8])
	}
	return int64((n + page - 1) &^ (page - 1))
}

// flat is the heap of n bytes without pointers: a string, bytes, or an array of
// numbers allocated at once.
func flat(n int) int64 {
	if n < len(tiny) {
		return int64(tiny[n])
	}
	return object(n)
}

// pointed is the heap of a slice of n pointers to structs of size bytes.
func pointed(n, size int) int64 {
	return pointers.grown(n) + int64(n)*object(size)
}

// The arrays behind pdata's slices.
var (
	pointers  = newArray(8, true)
	texts     = newArray(16, true)
	anyValues = newArray(sizeAnyValue, true)
	keyValues = newArray(sizeKeyValue, true)
	exemplars = newArray(sizeExemplar, true)
	int32s    = newArray(4, false)
	int64s    = newArray(8, false)
)

// array is the array behind a slice to which elements of elem bytes are
// appended one at a time.
type array struct {
	elem  int
	scan  bool // elements have pointers
	short [33]uint32
}

func newArray(elem int, scan bool) *array {
	a := &array{elem: elem, scan: scan}
	for n := range a.short {
		_, heap := a.append(n)
		a.short[n] = uint32(heap)
	}
	return a
}

// grown is the heap of the array once n elements were appended.
func (a *array) grown(n int) int64 {
	if n < len(a.short) {
		return int64(a.short[n])
	}
	_, heap := a.append(n)
	return heap
}

// append follows the runtime's growslice: capacity doubles up to 256 elements,
// then grows by a quarter and 192, and is stretched to fill the slot.
func (a *array) append(n int) (capacity int, heap int64) {
	for capacity < n {
		switch {
		case capacity == 0:
			capacity = 1
		case capacity < 256:
			capacity *= 2
		default:
			capacity += (capacity + 768) / 4
		}
		size, head := capacity*a.elem, 0
		if a.scan && size > maxBare && size <= maxClass-header {
			head = header
		}
		slot := object(size + head)
		capacity = (int(slot) - head) / a.elem
		heap = slot
		if !a.scan {
			heap = flat(capacity * a.elem)
		}
	}
	return capacity, heap
}
