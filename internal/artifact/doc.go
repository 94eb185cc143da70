// Package artifact stores files by their SHA-256 and transfers them between tracker and agents. The same Store serves
// the tracker, to which agents upload, and each agent, as a cache of downloads. It knows the wire, and no jobs. Begin
// with Store.
package artifact
