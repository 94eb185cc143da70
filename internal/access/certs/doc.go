// Package certs issues the certificates of a farm, and loads certificate files and reloads them when they change.
// Start with Order, which issues certificates, and Server, which uses them.
package certs
