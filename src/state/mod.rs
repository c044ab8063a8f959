//! The only room that writes .turnup/.
