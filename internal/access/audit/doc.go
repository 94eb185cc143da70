// Package audit writes down who did what on a tracker: JSON lines, in files of bounded size. It knows no transport;
// callers fill in an Entry. Begin with Log.
package audit
