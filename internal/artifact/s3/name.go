package s3

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/tilth-dev/tilth/internal/artifact"
	"github.com/tilth-dev/tilth/records"
)

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
