package oidc

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tilth-dev/tilth/internal/access/certs"
	"github.com/tilth-dev/tilth/internal/filesystem"
)

// Bounds on requests to an issuer and on its responses.
const (
	fetchTimeout     = 10 * time.Second
	maxDocumentBytes = 64 << 10
	maxKeySetBytes   = 256 << 10
	maxHeaderBytes   = 16 << 10
)

// discoveryPath is appended to the issuer's URL (OpenID Connect Discovery 1.0, section 4).
const discoveryPath = "/.well-known/openid-configuration"

// source fetches the issuer's keys.
type source struct {
	issuer string
	side   *filesystem.Reloaded[*tls.Config] // TLS configuration
}

func newSource(cfg Config, log *slog.Logger) (*source, error) {
	var files []string
	if cfg.CA != "" {
		files = append(files, cfg.CA)
	}
	side, err := filesystem.Reload(log, certs.ClientConfig{CA: cmp.Or(cfg.CA, certs.SystemRoots)}.Config, files...)
	return &source{issuer: cfg.Issuer, side: side}, err
}

// fetch fetches the issuer's keys.
func (s *source) fetch(ctx context.Context) ([]key, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	client := s.client()
	text, err := get(ctx, client, strings.TrimSuffix(s.issuer, "/")+discoveryPath, maxDocumentBytes)
	if err != nil {
		return nil, err
	}
	at, err := parseDocument(text, s.issuer)
	if err != nil {
		return nil, err
	}
	if text, err = get(ctx, client, at, maxKeySetBytes); err != nil {
		return nil, err
	}
	return parseKeys(text)
}

// client returns an HTTP client for one fetch, with the current authorities. It does not follow redirects.
func (s *source) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.side.Get().Clone(), DisableKeepAlives: true,
			MaxResponseHeaderBytes: maxHeaderBytes,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// get reads a document of at most limit bytes.
func get(ctx context.Context, client *http.Client, url string, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: the answer is %d %s", url, response.StatusCode, http.StatusText(response.StatusCode))
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("get %s: the answer has more than %d bytes", url, limit)
	}
	return text, nil
}

// parseDocument returns the URL of the issuer's keys from its discovery document.
func parseDocument(text []byte, issuer string) (keysURL string, err error) {
	var doc struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return "", fmt.Errorf("discovery document: %w", err)
	}
	if doc.Issuer != issuer {
		return "", fmt.Errorf("discovery document: it is of issuer %.256q, want %q: give the issuer's URL exactly as its document has it", doc.Issuer, issuer)
	}
	if _, err := checkURL(doc.Keys); err != nil {
		return "", fmt.Errorf("discovery document: jwks_uri %.256q: %w", doc.Keys, err)
	}
	return doc.Keys, nil
}
