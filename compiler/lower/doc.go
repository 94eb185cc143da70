// Package lower makes loops of schedules, inferring what part of each stage is needed where.
package lower
