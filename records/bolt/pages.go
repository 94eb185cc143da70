package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/tilth-dev/tilth/records"
)

// Layout of bbolt pages (bbolt's internal/common/page.go). Numbers are in native byte order.
const (
	pageHeaderBytes = 16
	elementBytes    = 16 // of branches and leaves
	bucketRootBytes = 16 // of a bucket's entry: root page and sequence; an inline page follows if the root is 0

	branchFlag   = 0x01
	leafFlag     = 0x02
	freelistFlag = 0x10
	// bucketFlag marks a leaf element that is a bucket.
	bucketFlag = 0x01
	// manyFree in a free list's count means that the real count precedes the first page number.
	manyFree = 0xffff
	// noFreelist in the meta page means that the file stores no free list.
	noFreelist = ^uint64(0)
)

var order = binary.NativeEndian

// pageFile reads the pages of a bbolt file without trusting their contents.
type pageFile struct {
	file io.ReaderAt
	meta boltMeta
}

// boltPage is a branch, a leaf or a free list. data includes its overflow pages.
type boltPage struct {
	id    uint64
	flags uint16
	count int
	data  []byte
}

// header returns a page without its data, and the number of pages it spans.
func (p *pageFile) header(id uint64) (page boltPage, pages uint64, err error) {
	var b [pageHeaderBytes]byte
	if err := p.readAt(b[:], id); err != nil {
		return boltPage{}, 0, err
	}
	page = boltPage{id: id, flags: order.Uint16(b[8:]), count: int(order.Uint16(b[10:]))}
	pages = 1 + uint64(order.Uint32(b[12:]))
	switch self := order.Uint64(b[:]); {
	case self != id:
		return page, 0, fmt.Errorf("%w: it says that it is page %d", records.ErrDamaged, self)
	case id+pages > p.meta.highWater:
		return page, 0, fmt.Errorf("%w: it ends beyond the file's last page", records.ErrDamaged)
	}
	return page, pages, nil
}

// read returns a page with its data.
func (p *pageFile) read(id uint64) (page boltPage, pages uint64, err error) {
	page, pages, err = p.header(id)
	if err != nil {
		return page, 0, err
	}
	page.data = make([]byte, pages*uint64(p.meta.pageSize))
	return page, pages, p.readAt(page.data, id)
}

func (p *pageFile) readAt(b []byte, id uint64) error {
	_, err := p.file.ReadAt(b, int64(id)*int64(p.meta.pageSize))
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: it ends beyond the end of the file", records.ErrDamaged)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("%w: the disk cannot read it: %v", records.ErrDamaged, err)
	}
	return err
}

// element is an entry of a branch or leaf.
type element struct {
	flags uint32
	child uint64 // branches only
	key   []byte
	value []byte // leaves only
	at    uint64 // offset of its key in the page
}

// element returns the i-th element; ok is false if it lies outside the page.
func (p *boltPage) element(i int) (e element, ok bool) {
	at := pageHeaderBytes + i*elementBytes
	if at+elementBytes > len(p.data) {
		return e, false
	}
	head := p.data[at : at+elementBytes]
	var from, keyBytes, valueBytes uint64
	if p.flags == branchFlag {
		from, keyBytes, e.child = uint64(order.Uint32(head)), uint64(order.Uint32(head[4:])), order.Uint64(head[8:])
	} else {
		e.flags, from = order.Uint32(head), uint64(order.Uint32(head[4:]))
		keyBytes, valueBytes = uint64(order.Uint32(head[8:])), uint64(order.Uint32(head[12:]))
	}
	from += uint64(at)
	if end := from + keyBytes + valueBytes; keyBytes == 0 || end > uint64(len(p.data)) {
		return e, false
	}
	e.at = from
	e.key = p.data[from : from+keyBytes]
	e.value = p.data[from+keyBytes : from+keyBytes+valueBytes]
	return e, true
}

// inline returns the page embedded in a bucket's entry.
func inline(entry []byte) (page boltPage, err error) {
	data := entry[bucketRootBytes:]
	if len(data) < pageHeaderBytes {
		return page, fmt.Errorf("%w: it has neither a page nor entries", records.ErrDamaged)
	}
	page = boltPage{flags: order.Uint16(data[8:]), count: int(order.Uint16(data[10:])), data: data}
	if page.flags != leafFlag {
		return page, fmt.Errorf("%w: its entries are not a leaf", records.ErrDamaged)
	}
	return page, nil
}

// free returns the free pages and the location of the free list; pages is 0 if the file stores none.
func (p *pageFile) free() (list []uint64, at, pages uint64, err error) {
	if at = p.meta.freelist; at == noFreelist {
		return nil, 0, 0, nil
	}
	page, pages, err := p.read(at)
	if err == nil && page.flags != freelistFlag {
		err = fmt.Errorf("%w: it is not a list of free pages", records.ErrDamaged)
	}
	if err != nil {
		return nil, at, 0, err
	}
	numbers, count := page.data[pageHeaderBytes:], uint64(page.count)
	if page.count == manyFree {
		count, numbers = order.Uint64(numbers), numbers[8:]
	}
	if count > uint64(len(numbers)/8) {
		return nil, at, 0, fmt.Errorf("%w: it lists more free pages than it has room for", records.ErrDamaged)
	}
	for i := range count {
		list = append(list, order.Uint64(numbers[8*i:]))
	}
	return list, at, pages, nil
}
