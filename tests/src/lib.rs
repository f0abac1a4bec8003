//! Tests of the whole house stand beside this file.
