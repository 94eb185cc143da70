// Package web serves the tracker's HTTP side: pages that show the farm's state and let people act on it, a JSON API,
// metrics and health. Pages work without scripts. The package uses the tracker's services like any other client and
// contains no policy. Start with New.
package web
