// Package access defines the identities and roles of callers and how a context carries them, stores the bearer tokens
// of a farm in a file without secrets, and writes the audit log. It does not depend on a transport;
// internal/access/authz decides what a role may do. Start with Identity, TokenFile and AuditLog.
package access
