// Package image writes the image of a container for several architectures as an OCI archive: a tar of an image layout,
// with an index that leads to one image for each.
package image
