package artifact

import (
	"context"
	"io"
	"time"
)

// Blob describes an artifact kept by Blobs.
type Blob struct {
	// Name is the unique location of the blob.
	Name string
	// Digest is the SHA-256 of the content. Owner is the identity that the space is accounted to.
	Digest, Owner string
	SizeBytes     int64
	// Used is when the blob was last put or touched, by the clock of the writer or of the server.
	Used time.Time
	// Checked is when the content was last verified; zero = unknown.
	Checked time.Time
}

// Blobs store whole artifacts: in a folder, or in an object store shared by several Stores. Retention and verification
// are left to the Store. Methods return fs.ErrNotExist if there is no such blob, and ErrAway while the object store is
// unavailable; the next call may succeed.
type Blobs interface {
	// String returns the location of the blobs, for messages.
	String() string
	// List calls each for all blobs in any order until it fails. A blob touched meanwhile is listed at least once.
	List(ctx context.Context, each func(Blob) error) error
	// Find returns the blob of a digest; if there are several, the most recently used.
	Find(ctx context.Context, digest string) (Blob, error)
	// Put stores a synced local file as a blob with b.Digest, b.Used and b.Checked. It may move the file.
	Put(ctx context.Context, b Blob, path string) (Blob, error)
	// Open reads a blob from an offset. A truncated blob reads as a shorter one.
	Open(ctx context.Context, b Blob, offset int64) (io.ReadCloser, error)
	// Touch records a use of a blob for all Stores that share it. The returned blob may have another name; the former
	// name may then be invalid.
	Touch(ctx context.Context, b Blob, at time.Time) (Blob, error)
	// Written returns when a blob was last written, if that is cheap to determine; otherwise b.Used.
	Written(b Blob) time.Time
	// Note persists b.Checked where possible.
	Note(b Blob)
	// Remove removes a blob. A missing blob is not an error.
	Remove(ctx context.Context, b Blob) error
	// SetAside keeps a damaged blob for inspection, out of reach of List.
	SetAside(ctx context.Context, b Blob) error
	// Tidy removes the remains of transfers interrupted before an instant.
	Tidy(ctx context.Context, before time.Time) error
	// Ready returns an error while blobs cannot be stored.
	Ready(ctx context.Context) error
}

// Part is one of Count partitions of the artifacts by digest. A Store with shared Blobs drops and verifies only its
// own part. The zero value includes all artifacts.
type Part struct{ Index, Count int }

// Has reports whether an artifact belongs to the part.
func (p Part) Has(digest string) bool {
	if p.Count <= 1 {
		return true
	}
	n := 0
	for _, c := range []byte(digest[:4]) {
		n = n*31 + int(c)
	}
	return n%p.Count == p.Index
}
