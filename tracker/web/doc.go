// Package web has what the tracker serves over HTTP beside gRPC: a page that says what is going on, its metrics and
// its health. It asks the services and the engine, and decides nothing.
package web
