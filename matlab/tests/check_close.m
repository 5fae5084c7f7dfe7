function check_close(a, b, bound, what)
%CHECK_CLOSE  Ends with an error unless two arrays have the same size, and a relative l2 distance within the bound.
if ~isequal(size(a), size(b))
    error('recontest:size', '%s: size [%s] where [%s] was expected', what, num2str(size(a)), num2str(size(b)));
end
distance = norm(double(a(:)) - double(b(:)));
scale = norm(double(b(:)));
if ~(scale > 0) || ~(distance <= bound * scale)
    error('recontest:close', '%s: relative distance %g, at most %g was expected', what, distance / scale, bound);
end
end
