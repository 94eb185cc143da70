// Package artifact stores files by their SHA-256, and transfers them between tracker and agents. The same Store serves
// the tracker, to which agents upload, and each agent, as a download cache. It depends on the wire protocol, but not
// on jobs. Start with Store.
package artifact
