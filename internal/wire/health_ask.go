package wire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// maxAnswerBytes bounds the response.
const maxAnswerBytes = 4096

// AskHealth requests one of the health pages from addr, host:port or unix:PATH, and returns why the process is
// unhealthy, or nil. A non-nil side enables TLS.
func AskHealth(ctx context.Context, addr, path string, side *tls.Config) error {
	if err := CheckAddress(addr); err != nil {
		return fmt.Errorf("health: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: side, DisableKeepAlives: true}
	host := addr
	if socket, is := strings.CutPrefix(addr, "unix:"); is {
		host = "localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	scheme := "http"
	if side != nil {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+path, nil)
	if err != nil {
		return fmt.Errorf("health of %s: %w: want host:port or unix:PATH", addr, err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	var unknown *net.DNSError
	if errors.As(err, &unknown) {
		return fmt.Errorf("health of %s: %w: check the spelling of the host name, and DNS", addr, unknown)
	}
	if err != nil {
		return fmt.Errorf("health of %s: %w: check that it was started with --http, and check --tls-ca", addr, err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("health of %s: %w", addr, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not healthy: %s", addr, strings.TrimSpace(string(said)))
	}
	return nil
}
