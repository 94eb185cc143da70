// Package access says who calls a tracker: identities, their roles, and how they travel with a call. It knows no
// transport; internal/access/authorisation decides what a role may do. Begin with Identity.
package access
