// Package objects keeps artifacts in a bucket of an object store that speaks S3, which several trackers share. Begin
// with Open.
//
// It is built on minio-go, the lightest of the kept libraries that do multipart uploads, paged lists, retries and the
// usual chain of credentials by themselves: it brings 59 packages beside Go's own, and gocloud.dev/blob above Amazon's
// 294, for the same calls. Other clouds' stores are reached by their S3 interfaces.
package objects
