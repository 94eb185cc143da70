// Package certs makes the certificates of a farm, and loads those in files, again when they change. It knows roles and
// TLS, and no tracker. Begin with Order, which makes certificates, and Server, which uses them.
package certs
