// Package s3server runs S3 servers for tests. Each is a separate process that stores objects as files in a folder.
package s3server
