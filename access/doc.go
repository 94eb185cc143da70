// Package access says who calls a tracker: identities, their roles, and how they travel with a call. What a role may
// do is access/authorisation's.
package access
