// Package s3 stores artifacts in a bucket of an S3-compatible object store, which several trackers may share.
// Other clouds are reached through their S3 interfaces. Start with Open.
package s3
