function bytes = utf8(text, what)
%UTF8  Returns the bytes of a text in UTF-8, for recon_mex. For internal use.
if isstring(text) && isscalar(text)
    text = char(text);
end
if ~ischar(text) || size(text, 1) ~= 1
    error('recon:InvalidArgument', '%s: this is a %s %s; give a text', what, ...
        recon.internal.size_text(size(text)), class(text));
end
bytes = unicode2native(text, 'UTF-8');
end
