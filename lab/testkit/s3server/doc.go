// Package s3server runs servers of an object store for tests: each a process of its own, which speaks S3 and keeps its
// objects as files in a folder.
package s3server
