// Package s3 stores artifacts in a bucket of an S3-compatible object store, which several trackers may share.
// Start with Open.
//
// It uses minio-go, the lightest maintained library with multipart uploads, paged lists, retries and the usual
// credential chain: it adds 59 packages to Go's own, compared with 294 for gocloud.dev/blob with the AWS SDK. Other
// clouds are reached through their S3 interfaces.
package s3
