// Package web has what the tracker serves over HTTP beside gRPC: pages that say what is going on, and let people act
// on it, metrics and health. Its pages work without scripts; it asks the tracker's services as any other client does,
// and decides nothing. Begin with New.
package web
