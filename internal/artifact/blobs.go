package artifact

import (
	"context"
	"io"
	"time"
)

// Blob is an artifact as Blobs keep it.
type Blob struct {
	// Name is where it lies. Nothing else ever has it.
	Name string
	// Digest is the sha256 of its bytes, Owner says whose room it takes.
	Digest, Owner string
	SizeBytes     int64
	// Used is when it was put or touched last, by the clock of who did, or of who keeps it.
	Used time.Time
	// Checked is when its bytes were last seen to be its own; zero = not known.
	Checked time.Time
}

// Blobs keep whole artifacts: in a folder, or in an object store that several Stores share. What is kept for how long,
// and whether it is right, is a Store's to say. The error is fs.ErrNotExist where there is no such blob, and ErrAway
// while the server of the blobs does not do what it is asked; the next call may find it back.
type Blobs interface {
	// String is where the blobs are, for messages.
	String() string
	// List calls each for all blobs, in any order, until that fails. One that is touched meanwhile comes at least
	// once.
	List(ctx context.Context, each func(Blob) error) error
	// Find is the blob of a digest, the one used last where there are several.
	Find(ctx context.Context, digest string) (Blob, error)
	// Put keeps the bytes of a local file, which are on the disk, as those of b.Digest, used at b.Used and checked at
	// b.Checked. It may take the file away.
	Put(ctx context.Context, b Blob, path string) (Blob, error)
	// Open reads a blob from an offset on. A blob that ends too early reads as one that ends there.
	Open(ctx context.Context, b Blob, offset int64) (io.ReadCloser, error)
	// Touch has the use of a blob be known to all who share it. What comes back may have another name; who knows the
	// former name finds nothing by it.
	Touch(ctx context.Context, b Blob, at time.Time) (Blob, error)
	// Written is when a blob was last written to, as far as that costs nothing to know; b.Used where it does.
	Written(b Blob) time.Time
	// Note has b.Checked outlive the process, where that is possible.
	Note(b Blob)
	// Remove removes a blob. One that is not there is no error.
	Remove(ctx context.Context, b Blob) error
	// SetAside keeps a damaged blob for whoever wants to know what befell it, where no List finds it.
	SetAside(ctx context.Context, b Blob) error
	// Tidy removes what transfers that broke off before an instant have left.
	Tidy(ctx context.Context, before time.Time) error
	// Ready fails while blobs cannot be kept.
	Ready(ctx context.Context) error
}

// Part is one of Count parts of the artifacts, by their digests: those that a Store which shares its Blobs drops and
// checks. The zero value is all of them.
type Part struct{ Index, Count int }

// Has says whether an artifact belongs to the part.
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
