// Package reload keeps what was made of files, and makes it anew when one of them changes: certificates and tokens are
// replaced without a restart.
package reload
