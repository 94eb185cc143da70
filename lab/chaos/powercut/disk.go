package powercut

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Disk is the state of a trace's files at an instant: as the processes saw them, and what a power failure may lose.
type Disk struct {
	trace *Trace
	at    int
	root  *node
	nodes []*node // all nodes ever, in order of creation
	gone  map[string]departure
}

// departure records when a path last ceased to name a file or folder.
type departure struct {
	step int
	node *node
}

// node is a file or a folder.
type node struct {
	path string // first path, relative to the root
	// A folder's current and synced names, and the changes between them.
	names, syncedNames map[string]*node
	renames            []rename
	// A file's synced bytes, the later changes, and the offset of the next write.
	synced  []byte
	changes []change
	size    int64 // current size
	cursor  int64
	append  bool
}

// rename is a change of names in a folder: a removed name, an added one, or both atomically.
type rename struct {
	step       int
	gone, came string
	node       *node // of the added name
}

// change is a write to a file or a change of its size.
type change struct {
	step   int
	offset int64
	data   []byte // nil for a size change
	size   int64  // of the file afterwards
	grows  bool   // or shrinks
}

// NewDisk returns the disk before the first step.
func (t *Trace) NewDisk() *Disk {
	d := &Disk{trace: t, gone: map[string]departure{}}
	d.root = d.folder("")
	for _, e := range t.before {
		n := &node{path: e.path, synced: slices.Clone(e.content), size: int64(len(e.content))}
		if !e.file {
			n.names, n.syncedNames = map[string]*node{}, map[string]*node{}
		}
		d.nodes = append(d.nodes, n)
		above, name, _ := d.parent(filepath.Join(t.root, e.path)) // listed earlier
		above.names[name], above.syncedNames[name] = n, n
	}
	return d
}

func (d *Disk) folder(path string) *node {
	n := &node{path: path, names: map[string]*node{}, syncedNames: map[string]*node{}}
	d.nodes = append(d.nodes, n)
	return n
}

// Advance replays calls up to an instant, which must not be in the past.
func (d *Disk) Advance(at int) error {
	for ; d.at < at; d.at++ {
		s := d.trace.steps[d.at]
		if err := d.do(s); err != nil {
			return fmt.Errorf("step %d, %s(%.200s): %w", d.at, s.call.name, strings.Join(s.call.args, ", "), err)
		}
	}
	return nil
}

func (d *Disk) do(s step) error {
	c := s.call
	switch c.name {
	case "openat":
		return d.open(c)
	case "write", "pwrite64":
		return d.write(s)
	case "lseek":
		return d.onFile(s, func(n *node) { n.cursor = c.result })
	case "ftruncate":
		size, err := strconv.ParseInt(c.args[1], 0, 64)
		if err != nil {
			return err
		}
		return d.onFile(s, func(n *node) { d.resize(n, size) })
	case "fsync", "fdatasync":
		return d.onFile(s, func(n *node) { n.sync(s.began) })
	}
	return d.rename(c)
}

// paths returns the paths among a call's arguments.
func (c call) paths() (out []string, err error) {
	for i, arg := range c.args {
		if !strings.HasPrefix(arg, `"`) {
			continue
		}
		b, err := unescape(arg)
		if err != nil {
			return nil, err
		}
		path := string(b)
		if !filepath.IsAbs(path) {
			folder, err := descriptor(c.args[i-1])
			if err != nil {
				return nil, err
			}
			path = filepath.Join(folder, path)
		}
		out = append(out, path)
	}
	return out, nil
}

// below returns a path relative to the root. ok is false for a path elsewhere.
func (d *Disk) below(path string) (string, bool) {
	path = filepath.Clean(path)
	if path == d.trace.root {
		return "", true
	}
	return strings.CutPrefix(path, d.trace.root+"/")
}

// lookup returns the file or folder at a path, or nil.
func (d *Disk) lookup(path string) *node {
	within, ok := d.below(path)
	if !ok {
		return nil
	}
	n := d.root
	for _, name := range strings.FieldsFunc(within, func(r rune) bool { return r == '/' }) {
		if n = n.names[name]; n == nil {
			return nil
		}
	}
	return n
}

// onFile calls f with the file or folder of the call's descriptor, unless it has no name left. The name is
// that at the start of the call; another thread may have removed it since.
func (d *Disk) onFile(s step, f func(*node)) error {
	c := s.call
	path, err := descriptor(c.args[0])
	if err != nil {
		return err
	}
	if _, within := d.below(path); !within || strings.HasSuffix(c.args[0], deleted) {
		return nil
	}
	n := d.lookup(path)
	if last, left := d.gone[path]; left && last.step >= s.began {
		n = last.node
	}
	if n == nil {
		return fmt.Errorf("%s is not known", path)
	}
	f(n)
	return nil
}

func (d *Disk) open(c call) error {
	paths, err := c.paths()
	if err != nil {
		return err
	}
	within, ok := d.below(paths[0])
	if !ok {
		return nil
	}
	flags := c.args[2]
	n := d.lookup(paths[0])
	switch {
	case n == nil && strings.Contains(flags, "O_CREAT"):
		n = &node{path: within}
		d.nodes = append(d.nodes, n)
		if err := d.link(paths[0], n); err != nil {
			return err
		}
	case n == nil:
		return fmt.Errorf("%s is not known", paths[0])
	case strings.Contains(flags, "O_TRUNC"):
		d.resize(n, 0)
	}
	n.cursor, n.append = 0, strings.Contains(flags, "O_APPEND")
	return nil
}

func (d *Disk) write(s step) error {
	c := s.call
	return d.onFile(s, func(n *node) {
		offset := n.cursor
		switch {
		case c.name == "pwrite64":
			offset, _ = strconv.ParseInt(c.args[3], 0, 64)
		case n.append:
			offset = n.size
			fallthrough
		default:
			n.cursor = offset + c.result
		}
		size := max(n.size, offset+c.result)
		n.changes = append(n.changes, change{step: d.at, offset: offset, data: c.data, size: size, grows: size != n.size})
		n.size = size
	})
}

func (d *Disk) resize(n *node, size int64) {
	n.changes = append(n.changes, change{step: d.at, size: size, grows: size != n.size})
	n.size = size
}

// parent returns the folder of a path, and the name in it.
func (d *Disk) parent(path string) (*node, string, error) {
	folder := d.lookup(filepath.Dir(path))
	if folder == nil || folder.names == nil {
		return nil, "", fmt.Errorf("the folder of %s is not known", path)
	}
	return folder, filepath.Base(path), nil
}

// link adds a name of a file or folder.
func (d *Disk) link(path string, n *node) error {
	folder, name, err := d.parent(path)
	if err != nil {
		return err
	}
	folder.change(rename{step: d.at, came: name, node: n})
	return nil
}

func (n *node) change(r rename) {
	r.apply(n.names)
	n.renames = append(n.renames, r)
}

func (r rename) apply(names map[string]*node) {
	delete(names, r.gone)
	if r.came != "" {
		names[r.came] = r.node
	}
}

// rename applies a call that changes names.
func (d *Disk) rename(c call) error {
	paths, err := c.paths()
	if err != nil {
		return err
	}
	first, within := d.below(paths[0])
	if !within {
		return fmt.Errorf("%s is elsewhere", paths[0])
	}
	if c.name == "mkdirat" {
		return d.link(paths[0], d.folder(first))
	}
	n := d.lookup(paths[0])
	if n == nil {
		return nil // such as a socket: other calls create it, and it is not durable
	}
	folder, name, err := d.parent(paths[0])
	if err != nil {
		return err
	}
	switch c.name {
	case "linkat":
		return d.link(paths[1], n)
	case "unlinkat":
		d.gone[paths[0]] = departure{d.at, n}
		folder.change(rename{step: d.at, gone: name})
		return nil
	}
	to, newName, err := d.parent(paths[1])
	if err != nil {
		return err
	}
	if to != folder {
		return fmt.Errorf("renaming from one folder to another is not followed")
	}
	d.gone[paths[0]] = departure{d.at, n}
	if former := folder.names[newName]; former != nil {
		d.gone[paths[1]] = departure{d.at, former}
	}
	folder.change(rename{step: d.at, gone: name, came: newName, node: n})
	return nil
}

// sync makes all changes durable that ended before the call began.
func (n *node) sync(began int) {
	for len(n.renames) > 0 && n.renames[0].step < began {
		n.renames[0].apply(n.syncedNames)
		n.renames = n.renames[1:]
	}
	for len(n.changes) > 0 && n.changes[0].step < began {
		n.synced = n.changes[0].apply(n.synced)
		n.changes = n.changes[1:]
	}
}

// apply applies the change to a file's bytes.
func (c change) apply(b []byte) []byte {
	b = resized(b, c.size)
	copy(b[min(c.offset, c.size):], c.data)
	return b
}

func resized(b []byte, size int64) []byte {
	if size <= int64(len(b)) {
		return b[:size:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}
