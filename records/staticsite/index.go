package staticsite

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/records"
)

// Version is the version of the index format. Other versions are refused.
const Version = 1

const (
	indexFormat = "tilth-records-index"
	// IndexName is the file name of the index. Chunks are in a folder beside it.
	IndexName   = "index.json"
	chunkFolder = "chunks"
	chunkSuffix = ".jsonl.gz"
)

// Bounds on what is read, regardless of who wrote it.
const (
	// maxIndexBytes allows for about 150,000 groups.
	maxIndexBytes = 64 << 20
	// maxChunkBytes bounds a chunk file, maxContentBytes its decompressed size. Written chunks are far smaller,
	// unless single records are as large as allowed.
	maxChunkBytes   = 64 << 20
	maxContentBytes = 256 << 20
)

// Index lists the records and their chunks.
type Index struct {
	Format  string   `json:"format"`
	Version int      `json:"version"`
	Targets []Target `json:"targets"` // sorted
}

// Target lists the workloads of a target.
type Target struct {
	Target    string     `json:"target"`
	Workloads []Workload `json:"workloads"` // sorted
}

// Workload lists the chunks of a workload on a target.
type Workload struct {
	Workload string `json:"workload"`
	// Records is the number of records and Keys the digest of their keys, which an exchange compares.
	Records uint64 `json:"records"`
	Keys    string `json:"keys_sha256"`
	// Best has the best record at each level of numerics; nil without verified records.
	Best *Chunk `json:"best,omitempty"`
	// Chunks have all records, oldest first.
	Chunks []Chunk `json:"chunks"`
}

// Chunk is a file of records.
type Chunk struct {
	Digest string `json:"sha256"`
	// SizeBytes is the size of the file, ContentBytes its decompressed size.
	SizeBytes    int64  `json:"size_bytes"`
	ContentBytes int64  `json:"content_bytes"`
	Records      uint64 `json:"records"`
}

// name returns the chunk's path relative to the index.
func (c Chunk) name() string { return chunkFolder + "/" + c.Digest + chunkSuffix }

// Parse parses an index. It returns ErrDamaged for malformed or inconsistent text, and ErrVersion for another version.
func Parse(text []byte) (*Index, error) {
	index := &Index{}
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(index); err != nil || index.Format != indexFormat {
		return nil, fmt.Errorf("%w: it is not the index of an export of records", records.ErrDamaged)
	}
	if index.Version != Version {
		return nil, fmt.Errorf("%w: index format %d, this one reads %d", records.ErrVersion, index.Version, Version)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows the index", records.ErrDamaged)
	}
	for i, t := range index.Targets {
		if i > 0 && t.Target <= index.Targets[i-1].Target {
			return nil, fmt.Errorf("%w: target %d of the index is out of order", records.ErrDamaged, i)
		}
		if err := t.check(); err != nil {
			return nil, fmt.Errorf("%w: target %d of the index: %w", records.ErrDamaged, i, err)
		}
	}
	return index, nil
}

func (t Target) check() error {
	if t.Target == "" || len(t.Target) > records.MaxNameBytes || strings.ContainsRune(t.Target, 0) {
		return errors.New("its name is empty, too long, or has a zero byte")
	}
	for i, w := range t.Workloads {
		if i > 0 && w.Workload <= t.Workloads[i-1].Workload {
			return fmt.Errorf("workload %d is out of order", i)
		}
		if err := w.check(); err != nil {
			return fmt.Errorf("workload %d: %w", i, err)
		}
	}
	return nil
}

func (w Workload) check() error {
	if !records.ValidDigest(w.Workload) || !records.ValidDigest(w.Keys) {
		return errors.New("a digest is not a sha256")
	}
	count := uint64(0)
	for _, c := range w.Chunks {
		if err := c.check(); err != nil {
			return err
		}
		if count += c.Records; count < c.Records || count > w.Records {
			break
		}
	}
	if count != w.Records || count == 0 {
		return fmt.Errorf("its chunks have not %d records", w.Records)
	}
	if w.Best == nil {
		return nil
	}
	if w.Best.Records > records.Levels {
		return fmt.Errorf("%d records are the best", w.Best.Records)
	}
	return w.Best.check()
}

func (c Chunk) check() error {
	switch {
	case !records.ValidDigest(c.Digest):
		return errors.New("the digest of a chunk is not a sha256")
	case c.SizeBytes <= 0 || c.SizeBytes > maxChunkBytes:
		return fmt.Errorf("a chunk has %d bytes, want 1 to %d", c.SizeBytes, maxChunkBytes)
	case c.ContentBytes <= 0 || c.ContentBytes > maxContentBytes:
		return fmt.Errorf("a chunk has %d bytes when it is decompressed, want 1 to %d", c.ContentBytes, maxContentBytes)
	case c.Records == 0:
		return errors.New("a chunk has no records")
	}
	return nil
}

// encode returns the text of the index.
func (x *Index) encode() ([]byte, error) {
	x.Format, x.Version = indexFormat, Version
	text, err := json.MarshalIndent(x, "", " ")
	if err != nil {
		return nil, err
	}
	if text = append(text, '\n'); len(text) > maxIndexBytes {
		return nil, fmt.Errorf("the index has %d bytes, more than the limit of %d: export fewer targets with --target", len(text), maxIndexBytes)
	}
	return text, nil
}

// chunks returns the digests of all chunks.
func (x *Index) chunks() map[string]bool {
	all := map[string]bool{}
	for _, t := range x.Targets {
		for _, w := range t.Workloads {
			if w.Best != nil {
				all[w.Best.Digest] = true
			}
			for _, c := range w.Chunks {
				all[c.Digest] = true
			}
		}
	}
	return all
}

// find returns the entry of a group; ok is false without one.
func (x *Index) find(of records.Group) (w Workload, ok bool) {
	at, ok := slices.BinarySearchFunc(x.Targets, of.Target, func(t Target, name string) int { return cmp.Compare(t.Target, name) })
	if !ok {
		return w, false
	}
	workloads := x.Targets[at].Workloads
	at, ok = slices.BinarySearchFunc(workloads, of.Workload, func(w Workload, name string) int { return cmp.Compare(w.Workload, name) })
	if !ok {
		return w, false
	}
	return workloads[at], true
}

// keys returns the decoded digest of a workload's keys.
func (w Workload) keys() (digest [32]byte) {
	_, _ = hex.Decode(digest[:], []byte(w.Keys)) // validated by Parse
	return digest
}
