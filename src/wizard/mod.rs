//! The wizard: an Elm core over ratatui.
