package s3

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/records"
)

const (
	// partBytes is how much of a file is buffered during an upload, transfers the number of concurrent uploads:
	// together they bound the memory.
	partBytes = 8 << 20
	transfers = 8
	// tries is the number of attempts per request, with backoff.
	tries = 4
	// answerWithin is the time limit of a call without much data; minBytesASecond adds time for data.
	answerWithin       = time.Minute
	minBytesASecond    = 256 << 10
	listWithin         = 15 * time.Minute
	dialWithin         = 5 * time.Second
	identifyWithin     = 5 * time.Second // time limit of the cloud's metadata service
	maxCopyBytes       = 5 << 30         // maximum size of a single copy; larger objects are copied in parts
	damagedFolder      = "damaged/"
	damagedObjects     = 8
	damagedObjectBytes = 256 << 20
)

// Bucket stores artifacts in a bucket as PREFIX/2c/DIGEST.OWNER.GENERATION. The generation makes the name unique and
// sorts by time. Bucket implements artifact.Blobs.
type Bucket struct {
	Address
	core  *minio.Core
	slots chan struct{} // limits concurrent transfers
}

var _ artifact.Blobs = (*Bucket)(nil)

// Open returns the bucket of an address. It does not contact the server; see Ready. Credentials come from the
// environment, from ~/.aws/credentials, or from the role of the machine or container, in this order.
func Open(a Address) (*Bucket, error) {
	transport, err := minio.DefaultTransport(a.Endpoint.Scheme == "https")
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", a, err)
	}
	transport.DialContext = (&net.Dialer{Timeout: dialWithin, KeepAlive: 15 * time.Second}).DialContext
	transport.ResponseHeaderTimeout = answerWithin
	lookup := minio.BucketLookupPath // supported by all servers
	if a.Endpoint.String() == defaultEndpoint {
		lookup = minio.BucketLookupAuto
	}
	core, err := minio.NewCore(a.Endpoint.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: identifyWithin}},
		}),
		Secure: a.Endpoint.Scheme == "https", Transport: transport, BucketLookup: lookup, MaxRetries: tries,
		Region: cmp.Or(a.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, fmt.Errorf("object store %s: %w", a, err)
	}
	return &Bucket{Address: a, core: core, slots: make(chan struct{}, transfers)}, nil
}

// List implements artifact.Blobs. It reads pages of a thousand objects.
func (b *Bucket) List(ctx context.Context, each func(artifact.Blob) error) error {
	return b.list(ctx, b.Prefix, func(info minio.ObjectInfo) error {
		blob, is := b.parse(info)
		if !is {
			return nil
		}
		return each(blob)
	})
}

func (b *Bucket) list(ctx context.Context, prefix string, each func(minio.ObjectInfo) error) error {
	own, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	for info := range b.core.ListObjectsIter(own, b.Bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if info.Err != nil {
			return b.fault(ctx, "list artifacts", info.Err)
		}
		if err := each(info); err != nil {
			return err
		}
	}
	return b.fault(ctx, "list artifacts", own.Err())
}

// Find implements artifact.Blobs.
func (b *Bucket) Find(ctx context.Context, digest string) (artifact.Blob, error) {
	var last artifact.Blob
	own, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := b.list(own, b.Prefix+digest[:2]+"/"+digest+".", func(info minio.ObjectInfo) error {
		if found, is := b.parse(info); is && !found.Used.Before(last.Used) {
			last = found
		}
		return nil
	})
	if err == nil && last.Name == "" {
		err = fmt.Errorf("find artifact %s in %s: %w", digest, b, fs.ErrNotExist)
	}
	return last, err
}

// Put implements artifact.Blobs.
func (b *Bucket) Put(ctx context.Context, blob artifact.Blob, path string) (artifact.Blob, error) {
	done, err := b.begin(ctx)
	if err != nil {
		return blob, err
	}
	defer done()
	f, err := os.Open(path)
	if err != nil {
		return blob, err
	}
	defer f.Close()
	own, cancel := context.WithTimeout(ctx, timeFor(blob.SizeBytes))
	defer cancel()
	blob.Name = b.name(blob)
	_, err = b.core.Client.PutObject(own, b.Bucket, blob.Name, f, blob.SizeBytes, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: partBytes, NumThreads: 1, SendContentMd5: true,
	})
	return blob, b.fault(ctx, "put artifact "+blob.Digest, err)
}

// begin waits for a transfer slot until ctx ends.
func (b *Bucket) begin(ctx context.Context) (done func(), err error) {
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// timeFor returns the time limit of a transfer.
func timeFor(bytes int64) time.Duration {
	return answerWithin + time.Duration(bytes/minBytesASecond)*time.Second
}

// Open implements artifact.Blobs.
func (b *Bucket) Open(ctx context.Context, blob artifact.Blob, offset int64) (io.ReadCloser, error) {
	if offset > 0 && offset == blob.SizeBytes { // not a valid range
		return io.NopCloser(http.NoBody), nil
	}
	opts := minio.GetObjectOptions{}
	if offset > 0 {
		if err := opts.SetRange(offset, 0); err != nil {
			return nil, err
		}
	}
	own, cancel := context.WithCancel(ctx)
	body, _, _, err := b.core.GetObject(own, b.Bucket, blob.Name, opts)
	if err != nil {
		cancel()
		return nil, b.fault(ctx, "get artifact "+blob.Digest, err)
	}
	stall := time.AfterFunc(answerWithin, cancel)
	stall.Stop()
	return &reader{ctx, b, blob.Digest, body, cancel, stall}, nil
}

// Touch implements artifact.Blobs. The server copies the object to a new name; the old one is then removed.
func (b *Bucket) Touch(ctx context.Context, blob artifact.Blob, at time.Time) (artifact.Blob, error) {
	touched := blob
	touched.Used = at
	touched.Name = b.name(touched)
	if err := b.copy(ctx, blob, touched.Name); err != nil {
		return blob, b.fault(ctx, "touch artifact "+blob.Digest, err)
	}
	_ = b.Remove(ctx, blob) // if it fails, the store that drops artifacts removes the object later
	return touched, nil
}

func (b *Bucket) copy(ctx context.Context, blob artifact.Blob, name string) error {
	own, cancel := context.WithTimeout(ctx, timeFor(blob.SizeBytes))
	defer cancel()
	to := minio.CopyDestOptions{Bucket: b.Bucket, Object: name}
	from := minio.CopySrcOptions{Bucket: b.Bucket, Object: blob.Name}
	var err error
	if blob.SizeBytes < maxCopyBytes {
		_, err = b.core.Client.CopyObject(own, to, from)
	} else {
		_, err = b.core.ComposeObject(own, to, from)
	}
	return err
}

// Written implements artifact.Blobs; objects are immutable.
func (b *Bucket) Written(blob artifact.Blob) time.Time { return blob.Used }

// Note implements artifact.Blobs; artifacts are verified again after a restart.
func (b *Bucket) Note(artifact.Blob) {}

// Remove implements artifact.Blobs.
func (b *Bucket) Remove(ctx context.Context, blob artifact.Blob) error {
	return b.remove(ctx, blob.Name)
}

func (b *Bucket) remove(ctx context.Context, name string) error {
	own, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	err := b.fault(ctx, "remove "+name, b.core.RemoveObject(own, b.Bucket, name, minio.RemoveObjectOptions{}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SetAside implements artifact.Blobs. The last few damaged objects are kept under PREFIX/damaged/.
func (b *Bucket) SetAside(ctx context.Context, blob artifact.Blob) error {
	kept := b.copy(ctx, blob, b.Prefix+damagedFolder+blob.Digest)
	err := b.fault(ctx, "set artifact "+blob.Digest+" aside", kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, b.Remove(ctx, blob), b.boundAside(ctx))
}

// boundAside removes the oldest objects that were set aside.
func (b *Bucket) boundAside(ctx context.Context) error {
	var kept []minio.ObjectInfo
	err := b.list(ctx, b.Prefix+damagedFolder, func(info minio.ObjectInfo) error {
		kept = append(kept, info)
		return nil
	})
	slices.SortFunc(kept, func(x, y minio.ObjectInfo) int { return y.LastModified.Compare(x.LastModified) })
	var bytes int64
	for i, info := range kept {
		if bytes += info.Size; i >= damagedObjects || bytes > damagedObjectBytes {
			err = errors.Join(err, b.remove(ctx, info.Key))
		}
	}
	return err
}

// Tidy implements artifact.Blobs. Parts of an incomplete upload take space but appear in no listing.
func (b *Bucket) Tidy(ctx context.Context, before time.Time) error {
	own, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	for left := range b.core.ListIncompleteUploads(own, b.Bucket, b.Prefix, true) {
		err := left.Err
		if err == nil && left.Initiated.Before(before) {
			err = b.core.AbortMultipartUpload(own, b.Bucket, left.Key, left.UploadID)
		}
		if err = b.fault(ctx, "remove unfinished uploads", err); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Ready implements artifact.Blobs.
func (b *Bucket) Ready(ctx context.Context) error {
	own, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	opts := minio.ListObjectsOptions{Prefix: b.Prefix, Recursive: true, MaxKeys: 1}
	for info := range b.core.ListObjectsIter(own, b.Bucket, opts) {
		return b.fault(ctx, "look at the bucket", info.Err)
	}
	return b.fault(ctx, "look at the bucket", own.Err())
}

// name returns a new name for an artifact. The names of one artifact sort by time, so that a listing that is read
// during a rename contains at least one of them.
func (b *Bucket) name(blob artifact.Blob) string {
	return fmt.Sprintf("%s%s/%s.%s.%016x%s",
		b.Prefix, blob.Digest[:2], blob.Digest, blob.Owner, blob.Used.UnixNano(), rand.Text()[:8])
}

// parse returns the artifact described by an object's name; false if the object is not an artifact.
func (b *Bucket) parse(info minio.ObjectInfo) (artifact.Blob, bool) {
	name := info.Key[strings.LastIndexByte(info.Key, '/')+1:]
	fields := strings.Split(name, ".")
	if len(fields) != 3 || !records.ValidDigest(fields[0]) || info.Key != b.Prefix+name[:2]+"/"+name {
		return artifact.Blob{}, false
	}
	return artifact.Blob{
		Name: info.Key, Digest: fields[0], Owner: fields[1], SizeBytes: info.Size, Used: info.LastModified,
	}, true
}

// reader reads an object. Any failure is reported where the data ends.
type reader struct {
	ctx    context.Context // the caller's
	bucket *Bucket
	digest string
	body   io.ReadCloser
	cancel context.CancelFunc
	stall  *time.Timer // cancels a stalled read
}

func (r *reader) Read(p []byte) (int, error) {
	r.stall.Reset(answerWithin)
	n, err := r.body.Read(p)
	r.stall.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.bucket.fault(r.ctx, "read artifact "+r.digest, err)
	}
	return n, err
}

// Close implements io.Closer.
func (r *reader) Close() error {
	r.stall.Stop()
	r.cancel()
	return r.body.Close()
}

// fault translates a library error into one with a remedy. Cancellation by the caller is returned as it is.
func (b *Bucket) fault(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s in %s: %w", what, b, context.Cause(ctx))
	}
	answer := minio.ToErrorResponse(err)
	switch answer.Code {
	case "NoSuchKey", "NoSuchUpload":
		return fmt.Errorf("%s in %s: %w", what, b, fs.ErrNotExist)
	case "QuotaExceeded", "XMinioStorageFull", "InsufficientCapacity":
		return fmt.Errorf("%w: %s: the object store is full (%s): free some space, or lower --artifact-space", artifact.ErrFull, what, b)
	}
	err = fmt.Errorf("%w: %s in %s: %s", artifact.ErrAway, what, b, b.remedy(answer, err))
	if misaddressed(answer) {
		return &addressError{err}
	}
	return err
}

// addressError is a permanent refusal by a reachable server.
type addressError struct{ error }

func (e *addressError) Unwrap() error { return e.error }

// IsAddressError reports whether an error means a wrong address or wrong credentials, which retries cannot fix.
func IsAddressError(err error) bool {
	_, is := errors.AsType[*addressError](err)
	return is
}

func misaddressed(answer minio.ErrorResponse) bool {
	switch answer.Code {
	case "NoSuchBucket", "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return true
	}
	return answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden
}

// remedy explains why the server refused a request.
func (b *Bucket) remedy(answer minio.ErrorResponse, err error) string {
	switch answer.Code {
	case "NoSuchBucket":
		return fmt.Sprintf("%s has no bucket %s: create it, or correct --artifacts", b.Endpoint, b.Bucket)
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return fmt.Sprintf("the bucket is in another region (%s): add region=REGION to --artifacts", answer.Message)
	case "RequestTimeTooSkewed":
		return "its clock and this machine's differ: set the time"
	case "SlowDown", "ServiceUnavailable", "TooManyRequests":
		return fmt.Sprintf("%s is overloaded (%s): the tracker tries again", b.Endpoint, answer.Code)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("it refuses the tracker's credentials (%s): correct AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "+
			"and allow to list, get, put and delete objects and to list and abort multipart uploads", answer.Code)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return fmt.Sprintf("%s is overloaded (%d): the tracker tries again", b.Endpoint, answer.StatusCode)
	}
	return fmt.Sprintf("%s does not answer as it should (%v): start it, or correct endpoint= in --artifacts", b.Endpoint, err)
}
