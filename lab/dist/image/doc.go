// Package image writes a multi-architecture container image as an OCI archive: a tar of an image layout with an
// index.
package image
