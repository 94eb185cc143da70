// Package audit writes an audit log: one JSON line per call, in files of bounded size. It does not depend on a
// transport; callers fill in each Entry. Start with Log.
package audit
