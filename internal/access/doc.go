// Package access defines the identities and roles of callers, and how a context carries them. It does not depend on a
// transport; internal/access/authorisation decides what a role may do. Start with Identity.
package access
