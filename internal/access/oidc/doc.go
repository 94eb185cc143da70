// Package oidc verifies the tokens of an OpenID Connect issuer, such as Keycloak, Dex or Entra ID: signed JWTs that
// identify the caller. It fetches the issuer's keys in the background and keeps the last ones, so that an unreachable
// issuer does not lock out callers whose keys are known. Start with Verifier.
//
// References: OpenID Connect Discovery 1.0, RFC 7517 (keys), RFC 7519 (claims), RFC 8725 (checks).
package oidc
