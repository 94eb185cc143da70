package bolt

import (
	"bytes"
	"cmp"
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

// maxDepth bounds the branches above a leaf. A deeper file would have more pages than any disk.
const maxDepth = 64

// tree checks the page structure of a bbolt file from the root: each page is used once and is not free, keys are in
// order, and entries lie within their pages. bbolt trusts all of this, and crashes or loops forever otherwise.
type tree struct {
	pageFile
	// row is called for every entry. If nil, the leaves of buckets are not read; there are hundreds for each branch.
	row func(bucket string, key, value []byte, flags uint32)
	// damaged is called for each damage.
	damaged func(*records.Damage)
	taken   []uint64 // bitmap of used pages
	err     error    // first read error
}

// bucketEntry is an entry of the bucket of buckets.
type bucketEntry struct {
	name  string
	entry []byte
}

// buckets checks everything except the pages of the buckets, and returns the buckets.
func (t *tree) buckets() (all []bucketEntry) {
	t.taken = make([]uint64, t.meta.highWater/64+1)
	t.claim("", 0, 2)
	free, at, pages, err := t.free()
	if err != nil {
		t.found(at, "", err)
	} else if pages > 0 {
		t.claim("", at, pages)
	}
	for _, id := range free {
		t.claim("free pages", id, 1)
	}
	row := t.row
	t.row = func(_ string, key, value []byte, flags uint32) {
		if flags != bucketFlag || len(value) < bucketRootBytes {
			t.found(t.meta.root, string(key), fmt.Errorf("%w: it is not a bucket", records.ErrDamaged))
			return
		}
		all = append(all, bucketEntry{string(key), value})
	}
	if t.claim("", t.meta.root, 1) {
		t.walk("", t.meta.root, span{}, 0)
	}
	t.row = row
	return all
}

// bucket checks the pages of a bucket.
func (t *tree) bucket(b bucketEntry) {
	root := order.Uint64(b.entry)
	if root == 0 {
		page, err := inline(b.entry)
		if err != nil {
			t.found(0, b.name, err)
			return
		}
		t.entries(b.name, &page, span{}, 0)
		return
	}
	if t.claim(b.name, root, 1) {
		t.walk(b.name, root, span{}, 0)
	}
}

// unused counts the pages that are neither free nor used; 0 if the file stores no free list.
func (t *tree) unused() (count int) {
	if t.meta.freelist == noFreelist {
		return 0
	}
	for id := range t.meta.highWater {
		if t.taken[id/64]&(1<<(id%64)) == 0 {
			count++
		}
	}
	return count
}

// span bounds the keys of a page: min <= key < max. A nil bound is open.
type span struct{ min, max []byte }

func (s span) holds(key []byte) bool {
	return bytes.Compare(key, s.min) >= 0 && (s.max == nil || bytes.Compare(key, s.max) < 0)
}

// walk checks a page, of which only the first is claimed yet, and the pages below it.
func (t *tree) walk(bucket string, id uint64, keys span, depth int) {
	page, pages, err := t.read(id)
	if err != nil {
		t.found(id, bucket, err)
		return
	}
	if pages == 1 || t.claim(bucket, id+1, pages-1) {
		t.entries(bucket, &page, keys, depth)
	}
}

// entries checks a page's entries and the pages below them.
func (t *tree) entries(bucket string, page *boltPage, keys span, depth int) {
	all := make([]element, 0, page.count)
	// bbolt writes the data of entries contiguously. Checking that detects a wrong count, which would hide entries.
	next := uint64(pageHeaderBytes + page.count*elementBytes)
	for i := range page.count {
		e, ok := page.element(i)
		ok = ok && e.at == next
		next += uint64(len(e.key) + len(e.value))
		switch {
		case !ok:
			t.found(page.id, bucket, fmt.Errorf("%w: entry %d is misplaced", records.ErrDamaged, i))
			return
		case !keys.holds(e.key), i > 0 && bytes.Compare(all[i-1].key, e.key) >= 0:
			t.found(page.id, bucket, fmt.Errorf("%w: entry %d is out of order", records.ErrDamaged, i))
		}
		all = append(all, e)
	}
	switch {
	case page.flags == leafFlag && t.row != nil:
		for _, e := range all {
			t.row(bucket, e.key, e.value, e.flags)
		}
	case page.flags == branchFlag && depth < maxDepth && len(all) > 0:
		t.children(bucket, all, keys, depth)
	case page.flags != leafFlag:
		t.found(page.id, bucket, fmt.Errorf("%w: it is neither a leaf nor a branch", records.ErrDamaged))
	}
}

// children checks the pages below a branch. If the first is a leaf, all are.
func (t *tree) children(bucket string, all []element, keys span, depth int) {
	leaves := false
	for i, e := range all {
		if !t.claim(bucket, e.child, 1) {
			continue
		}
		if i == 0 && t.row == nil {
			page, _, err := t.header(e.child)
			leaves = err == nil && page.flags == leafFlag
		}
		if leaves {
			continue
		}
		below := span{e.key, keys.max}
		if i+1 < len(all) {
			below.max = all[i+1].key
		}
		t.walk(bucket, e.child, below, depth+1)
	}
}

// claim marks pages as used. It reports pages that are already used, free or out of range, and returns false.
func (t *tree) claim(bucket string, id, pages uint64) bool {
	if id >= t.meta.highWater || pages > t.meta.highWater-id {
		t.found(id, bucket, fmt.Errorf("%w: the file has no such page", records.ErrDamaged))
		return false
	}
	for n := id; n < id+pages; n++ {
		if t.taken[n/64]&(1<<(n%64)) != 0 {
			t.found(n, bucket, fmt.Errorf("%w: it is used twice, or free", records.ErrDamaged))
			return false
		}
		t.taken[n/64] |= 1 << (n % 64)
	}
	return true
}

// found reports damage, and records any other error as a failure of the check.
func (t *tree) found(page uint64, bucket string, err error) {
	if !errors.Is(err, records.ErrDamaged) {
		t.err = cmp.Or(t.err, err)
		return
	}
	t.damaged(&records.Damage{Page: page, Bucket: bucket, Err: err})
}

// checkPages checks the pages of an open file except leaves, and returns the first damage.
func checkPages(p pageFile) error {
	var first *records.Damage
	t := &tree{pageFile: p, damaged: func(d *records.Damage) {
		first = cmp.Or(first, d)
	}}
	for _, b := range t.buckets() {
		t.bucket(b)
	}
	if first != nil {
		return first
	}
	return t.err
}
